"""CodeEvolve's entry stage: chooses the island whose turn it is, and what its next program is made from (§4.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig
from flowevolve.algorithms.code_evolve.islands import Island, Islands, Place
from flowevolve.algorithms.code_evolve.payloads import Chosen, Operator
from flowevolve.core.assessment import NothingWorksError
from flowevolve.core.context import PoolReader, StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.policies.drawing import by_rank, draw, evenly


class Selected(Record, kind="code_evolve.selected"):
    """What an island's next program is made from. Candidates are named by their ids."""

    island: int
    version: int
    parent: str
    inspirations: tuple[str, ...] = ()
    operator: Operator
    prompt: str
    ancestors: tuple[str, ...] = ()
    failed: str | None = None
    """The last failed program that was written with the prompt."""


class Select:
    """Chooses the island with the fewest open flows, so that a slow one does not hold up the others. If several have
    equally few, the one that has had the fewest turns is next. Both counts follow from events.
    """

    def __init__(self, islands: Islands, config: CodeEvolveConfig) -> None:
        self._islands = islands
        self._config = config
        self._turns = [0] * len(islands)
        self._open: dict[int, int] = {}
        """The island of each open flow."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        selected = context.decide(Selected, lambda: self._choose(context))
        to = "meta" if selected.operator == "explore" else "generate"
        yield Emit(_chosen(selected, context.pool), to=to, version=selected.version, derives=(selected.parent,))

    def apply_event(self, event: Event) -> None:
        """Count turns and open flows."""
        match event.body:
            case OwnEvent(kind=Selected.kind, data=data, item=item):
                island = Selected.from_json(data).island
                self._turns[island] += 1
                self._open[flow_of(item)] = island
            case FlowClosed(flow):
                self._open.pop(flow, None)
            case _:
                pass

    def _choose(self, context: StageContext) -> Selected:
        open_flows, turns = list(self._open.values()), self._turns
        index = min(range(len(turns)), key=lambda each: (open_flows.count(each), turns[each], each))
        island, version = self._islands[index], context.pool.version
        if not island.ranked:  # not even the seed, of which every island has a copy if it works
            raise NothingWorksError
        started = island.evaluations + open_flows.count(index) >= self._config.start_programs
        chosen = self._evolve(island, context) if started else _start(island)
        return Selected.from_json({"island": index, "version": version, **chosen})

    def _evolve(self, island: Island, context: StageContext) -> dict[str, JSON]:
        random, ranked = context.random, island.ranked
        explores = random.random() >= 1 - island.exploring.rate
        weights = evenly(len(ranked)) if explores else by_rank(len(ranked))
        (parent,) = draw(ranked, weights, 1, random)
        others = [(each, weight) for each, weight in zip(ranked, weights, strict=True) if each is not parent]
        inspirations = draw(
            [each for each, _ in others], [weight for _, weight in others], self._config.inspirations, random
        )
        chosen: dict[str, JSON] = {"parent": parent.id, "inspirations": [each.id for each in inspirations]}
        if not explores:
            ancestors = [each.id for each in _ancestors(parent, self._config.ancestors, context.pool)]
            return chosen | {"operator": "exploit", "prompt": Place.of(parent).prompt, "ancestors": list(ancestors)}
        prompt = random.choice(island.prompts)
        failed = island.failures.get(prompt.id)
        tried = None if failed is None else failed.id
        return chosen | {"operator": "explore", "prompt": prompt.id, "ancestors": [], "failed": tried}


def _start(island: Island) -> dict[str, JSON]:
    """What one of the programs to begin with is made from: the seed and the first prompt alone."""
    seed, prompt = island.first_program, island.first_prompt
    return {"parent": seed.id, "inspirations": [], "operator": "start", "prompt": prompt.id, "ancestors": []}


def _ancestors(program: Candidate, most: int, pool: PoolReader) -> list[Candidate]:
    """The program's nearest ancestors, at most ``most`` and up to the root of its tree, oldest first."""
    found: list[Candidate] = []
    while program.parents and len(found) < most:
        program = pool[program.parents[0]]
        found.insert(0, program)
    return found


def _chosen(selected: Selected, pool: PoolReader) -> Chosen:
    return Chosen(
        selected.island,
        selected.operator,
        pool[selected.parent],
        pool[selected.prompt],
        tuple(pool[name] for name in selected.ancestors),
        tuple(pool[name] for name in selected.inspirations),
        None if selected.failed is None else pool[selected.failed],
    )
