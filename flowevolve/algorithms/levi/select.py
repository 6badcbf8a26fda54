"""What LEVI selects from its archive: a parent to mutate, representatives for a shift, and what advice is about."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flowevolve._util.clock import in_thread
from flowevolve.algorithms.levi.commit import Progress
from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.map_elites import MapElites, representatives
from flowevolve.algorithms.levi.payloads import Advice, Brief
from flowevolve.algorithms.levi.write import SMALL, Writer, advice_prompt
from flowevolve.core.assessment import Assessment, NothingWorksError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item, Ticket
from flowevolve.core.model import Message
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.stages import as_shown


class Selected(Record, kind="levi.selected"):
    """The parent of a mutation, and perhaps a second elite to learn from, by their ids."""

    shown: tuple[str, ...]
    advice: str
    temperature: float
    version: int


class Shifted(Record, kind="levi.shifted"):
    """Representatives of the archive, best first, and what else is shown beside them, by their ids."""

    shown: tuple[str, ...]
    failures: tuple[str, ...]
    """The latest shifts; when looking back, the latest candidates that failed."""
    version: int


class LookedBack(Shifted, kind="levi.looked_back"):
    """Representatives of the archive, and the latest candidates that failed."""


SurveyT = TypeVar("SurveyT", bound=Shifted)


@dataclass(frozen=True)
class Selection:
    """The stages that select from the archive."""

    archive: MapElites
    progress: Progress
    config: LEVIConfig
    writer: Writer

    async def select(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Sample a parent by score, at a temperature that depends on the ticket's number, and often a second elite."""
        ordinal = item.expect(Ticket).ordinal
        selected = context.decide(Selected, lambda: self._choose(ordinal, context))
        brief = Brief("mutate", selected.shown, selected.advice)
        yield Emit(brief, version=selected.version, derives=selected.shown)

    def _choose(self, ordinal: int, context: StageContext) -> Selected:
        temperature = self.config.temperatures[ordinal % len(self.config.temperatures)]
        elites = list(self.archive.elites)
        if not elites:
            raise NothingWorksError
        parent = _sample(elites, temperature, context)
        shown = [parent.id]
        elites.remove(parent)
        if elites and context.random.random() < self.config.inspiration:
            shown.append(_sample(elites, temperature, context).id)
        advised = context.random.random() < self.config.advice
        return Selected(
            shown=tuple(shown),
            advice=self.progress.advice if advised else "",
            temperature=temperature,
            version=context.pool.version,
        )

    async def shift(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Has the large model write something unlike the best candidate of each of some clusters of the archive."""
        survey = await self._survey(Shifted, context, tuple(self.progress.shifts))
        earlier = tuple(name for name in survey.failures if name not in survey.shown)
        yield Emit(Brief("shift", survey.shown, earlier=earlier), version=survey.version, derives=survey.shown)

    async def advise(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Has the small model look back at good candidates and at what went wrong."""
        survey = await self._survey(LookedBack, context, tuple(self.progress.failures))
        best = [as_shown(context.pool[name]) for name in survey.shown]
        wrong = dict.fromkeys(str(Assessment.of(context.pool[name]).failure) for name in survey.failures)
        prompt = advice_prompt(context.templates, self.writer.statement, best, list(wrong))
        reply = await context.chat(SMALL, [Message("user", prompt)], max_tokens=self.config.advice_tokens)
        if not reply.text.strip():
            raise Discard("no advice in the reply")
        yield Emit(Advice(reply.text.strip()), version=survey.version, derives=survey.shown)

    async def _survey(self, record: type[SurveyT], context: StageContext, failures: tuple[str, ...]) -> SurveyT:
        """Representatives of the archive as it is now. They are logged as a ``record``: a resumed run uses the same."""
        version, spread, seed = context.pool.version, self.archive.spread(), context.random.getrandbits(31)

        async def make() -> SurveyT:
            found = await in_thread(representatives, spread, self.config.shift_clusters, seed)
            return record(shown=tuple(found), failures=failures, version=version)

        return await context.once(record, make)


def _sample(elites: Sequence[Candidate], temperature: float, context: StageContext) -> Candidate:
    weights = softmax_weights([each.mean_score for each in elites], temperature)
    return context.random.choices(elites, weights)[0]


def softmax_weights(scores: Sequence[float], temperature: float) -> list[float]:
    """Weights to sample by (LEVI, §3): one in (0, 1] for each score, 1 for the highest; not normalised.

    Scores are first scaled to [0, 1], from the lowest to the highest, so that a temperature means the same on every
    scale. ``temperature`` is positive; the lower it is, the more the highest scores stand out.
    """
    lowest, highest = min(scores), max(scores)
    span = highest - lowest
    if span <= 0:
        return [1.0] * len(scores)
    return [math.exp(((score - lowest) / span - 1) / temperature) for score in scores]
