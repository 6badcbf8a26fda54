"""What is chosen from the archive: a mutation's parent, a shift's representatives, what advice is about."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.payloads import Advice, Brief
from flowevolve.algorithms.levi.progress import Progress
from flowevolve.algorithms.levi.prompts import advice_prompt
from flowevolve.algorithms.levi.writing import SMALL, Writer
from flowevolve.archives.map_elites import MapElites, representatives
from flowevolve.clock import in_thread
from flowevolve.context import StageContext
from flowevolve.item import Item, Ticket
from flowevolve.llm.types import JSON, Message
from flowevolve.policies.softmax import softmax_weights
from flowevolve.pool import Candidate
from flowevolve.stage import Discard, Emit, Exhausted
from flowevolve.stages.coding import as_shown


@dataclass(frozen=True)
class Select:
    """One parent, sampled by score at a temperature that goes by the ticket's number, and often a second elite."""

    archive: MapElites
    progress: Progress
    config: LEVIConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        chosen = context.decide("levi.selected", lambda: self._choose(ordinal, context))
        yield _emit(Brief("mutate", _names(chosen["shown"]), str(chosen["advice"])), chosen)

    def _choose(self, ordinal: int, context: StageContext) -> Mapping[str, JSON]:
        temperature = self.config.temperatures[ordinal % len(self.config.temperatures)]
        elites = list(self.archive.elites)
        if not elites:
            raise Exhausted
        parent = _sample(elites, temperature, context)
        shown: list[JSON] = [parent.id]
        elites.remove(parent)
        if elites and context.random.random() < self.config.inspiration:
            shown.append(_sample(elites, temperature, context).id)
        advised = context.random.random() < self.config.advice
        return {
            "shown": shown,
            "advice": self.progress.advice if advised else "",
            "temperature": temperature,
            "version": context.pool.version,
        }


def _sample(elites: Sequence[Candidate], temperature: float, context: StageContext) -> Candidate:
    weights = softmax_weights([each.mean_score for each in elites], temperature)
    return context.random.choices(elites, weights)[0]


@dataclass(frozen=True)
class Shift:
    """Briefs the large model with the best of each of some clusters of the archive."""

    archive: MapElites
    config: LEVIConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = await _survey(self.archive, self.config.shift_clusters, "levi.shifted", context)
        yield _emit(Brief("shift", _names(chosen["shown"])), chosen)


@dataclass(frozen=True)
class Advise:
    """Has the small model look back at good candidates and at what went wrong."""

    archive: MapElites
    progress: Progress
    config: LEVIConfig
    writer: Writer

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        failures = tuple(self.progress.failures)
        chosen = await _survey(self.archive, self.config.shift_clusters, "levi.looked_back", context, failures)
        best = [as_shown(context.pool[name]) for name in _names(chosen["shown"])]
        failed = [context.pool[name] for name in _names(chosen["failures"])]
        wrong = dict.fromkeys(str(each.attributes["failure"]) for each in failed)
        prompt = advice_prompt(self.writer.statement, best, list(wrong))
        reply = await context.chat(SMALL, [Message("user", prompt)], max_tokens=self.config.advice_tokens)
        if not reply.text.strip():
            raise Discard("no advice in the reply")
        yield _emit(Advice(reply.text.strip()), chosen)


async def _survey(
    archive: MapElites, count: int, kind: str, context: StageContext, failures: Sequence[str] = ()
) -> Mapping[str, JSON]:
    """Representatives of the archive as it is now, settled under this kind of event."""
    version = context.pool.version
    spread = archive.spread()
    seed = context.random.getrandbits(31)

    async def make() -> Mapping[str, JSON]:
        found: list[JSON] = [*await in_thread(representatives, spread, count, seed)]
        return {"shown": found, "failures": list(failures), "version": version}

    return await context.once(kind, make)


def _names(found: JSON) -> tuple[str, ...]:
    return tuple(cast("list[str]", found))


def _emit(payload: Brief | Advice, chosen: Mapping[str, JSON]) -> Emit:
    return Emit(payload, version=cast(int, chosen["version"]), derives=_names(chosen["shown"]))
