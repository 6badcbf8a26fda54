"""CodeEvolve's entry stage: whose turn it is, and what that island's next program is made of (§4.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import cast

from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig
from flowevolve.algorithms.code_evolve.payloads import Chosen, Operator
from flowevolve.archives.islands import PROMPT, Island, Islands
from flowevolve.context import PoolReader, StageContext
from flowevolve.events import Event
from flowevolve.item import Item
from flowevolve.item_ids import flow_of
from flowevolve.llm.types import JSON
from flowevolve.policies.drawing import by_rank, draw, evenly
from flowevolve.pool import Candidate
from flowevolve.stage import Emit

SELECTED = "code_evolve.selected"


class Select:
    """The island with the fewest open flows is next, so that a slow one is no burden to the others; of equals the one
    that had fewer turns. Both counts are rebuilt from events.
    """

    def __init__(self, islands: Islands, config: CodeEvolveConfig) -> None:
        self._islands = islands
        self._config = config
        self._turns = [0] * len(islands)
        self._open: dict[int, int] = {}
        """The island of each open flow."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        said = context.decide(SELECTED, lambda: self._choose(context))
        self._open[item.flow] = cast(int, said["island"])
        chosen = _chosen(said, context.pool)
        yield Emit(
            chosen,
            to="meta" if chosen.operator == "explore" else "generate",
            version=cast(int, said["version"]),
            derives=(chosen.parent.id,),
        )

    def recall(self, event: Event) -> None:
        """Count turns and open flows of a run that was interrupted."""
        if event.kind == SELECTED:
            island = cast(int, event.data["island"])
            self._turns[island] += 1
            self._open[flow_of(str(event.data["item"]))] = island

    def flow_ended(self, flow: int) -> None:
        self._open.pop(flow, None)

    def _choose(self, context: StageContext) -> Mapping[str, JSON]:
        open_flows = list(self._open.values())
        turns = self._turns
        index = min(range(len(turns)), key=lambda each: (open_flows.count(each), turns[each], each))
        turns[index] += 1
        island = self._islands[index]
        started = island.evaluations + open_flows.count(index) >= self._config.start_programs
        chosen = self._evolve(island, context) if started else _start(island)
        return {"island": index, "version": context.pool.version, **chosen}

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
            ancestors: list[JSON] = [each.id for each in _ancestors(parent, self._config.ancestors, context.pool)]
            return {**chosen, "operator": "exploit", "prompt": parent.attributes[PROMPT], "ancestors": ancestors}
        prompt = random.choice(island.prompts)
        failed = island.failures.get(prompt.id)
        return {
            **chosen,
            "operator": "explore",
            "prompt": prompt.id,
            "ancestors": [],
            "failed": None if failed is None else failed.id,
        }


def _start(island: Island) -> dict[str, JSON]:
    """Another way to begin: the seed and the first prompt alone."""
    seed = island.seed
    assert seed is not None, "every island has the seed before admission begins"
    prompt = island.first_prompt
    return {"parent": seed.id, "inspirations": [], "operator": "start", "prompt": prompt.id, "ancestors": []}


def _ancestors(program: Candidate, most: int, pool: PoolReader) -> list[Candidate]:
    """The nearest ones up to the root of its tree, oldest first."""
    found: list[Candidate] = []
    while program.parents and len(found) < most:
        program = pool[program.parents[0]]
        found.insert(0, program)
    return found


def _chosen(said: Mapping[str, JSON], pool: PoolReader) -> Chosen:
    def named(key: str) -> tuple[Candidate, ...]:
        return tuple(pool[name] for name in cast("list[str]", said[key]))

    failed = said.get("failed")
    return Chosen(
        cast(int, said["island"]),
        cast(Operator, said["operator"]),
        pool[str(said["parent"])],
        pool[str(said["prompt"])],
        named("ancestors"),
        named("inspirations"),
        None if failed is None else pool[str(failed)],
    )
