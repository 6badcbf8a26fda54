"""A run directory as rows of the tables, read bit by bit while the run goes on, or at once when it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

import tomli_w

from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.prices import known_prices
from flowevolve.config.run import parse_recorded
from flowevolve.config.sections import BranchSettings
from flowevolve.core.budget import Cost
from flowevolve.core.event_kinds import RunResumed
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.journal.run_directory import RESULT, find_state, read_result
from flowevolve.page.projection.projection import Projection
from flowevolve.page.reading.ended import Ended
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import RunRow
from flowevolve.telemetry.run_figures import ProgressFigures, used


class RunSource:
    """Follows the journal of a run. Use it as a context manager, or `close` it. ``name`` is what the page calls the
    run.

    Raises:
        InputError: if there is no run in the directory, or it can't be read.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.recorded = RecordedRun(path)
        try:
            table = self.recorded.config
            self._toml = tomli_w.dumps(table)
            self.config = parse_recorded(table, f"{path}/config.toml")
        except BaseException:
            self.recorded.close()
            raise
        self.projection = Projection(known_prices(self.config))
        self._figures = ProgressFigures()
        self._seq, self._call = -1, 0
        """The numbers of the last event and of the last call that were taken; calls are numbered from 1."""
        self._row: RunRow | None = None

    def close(self) -> None:
        self.recorded.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def changes(self) -> Iterator[Row]:
        """The rows that have changed since the last time, in order. A row may come more than once; the last one counts.

        A call comes after the last event before its end. Calls that ended after the last event that could be read are
        left for the next time.
        """
        ended = self._ended()
        last = self.recorded.last_event()
        upto = self._seq if last is None else last[0]
        calls = self.recorded.calls(self._call, texts=False)
        call = next(calls, None)
        while call is not None and call.seq <= self._seq:
            yield from self._take(call)
            call = next(calls, None)
        for event in self.recorded.events(self._seq):
            if event.seq > upto:
                break
            self._seq = event.seq
            if not isinstance(event.body, RunResumed):  # what came before it has been counted already
                self._figures.take(event)
            yield from self.projection.event(event)
            while call is not None and call.seq <= event.seq:
                yield from self._take(call)
                call = next(calls, None)
        yield from self._end(ended)

    def reply(self, call: int) -> str | None:
        """The text of a call's reply; None if there is none."""
        found = self.recorded.call(call)
        return None if found is None else found.reply

    def _take(self, call: RecordedCall) -> Iterator[Row]:
        self._call = call.id
        return self.projection.call(call)

    def _ended(self) -> Ended | None:
        """The result, which is written after the last event; None if there is none yet."""
        return Ended.read(read_result(self.path)) if (self.path / RESULT).is_file() else None

    def _end(self, ended: Ended | None) -> Iterator[Row]:
        """The rows on the run as a whole, if they have changed."""
        row = self._run_row(ended)
        if row == self._row:
            return
        self._row = row
        yield row
        yield from self.projection.curve.last(row.seconds)
        if ended is not None:
            yield from ended.rows(self.projection)

    def _run_row(self, ended: Ended | None) -> RunRow:
        config, figures, start = self.config, self._figures, self.projection.start
        seconds = max(figures.seconds, self.projection.spent.last) if ended is None else ended.seconds
        low, high = (ended.interval if ended is not None else None) or (None, None)
        budget = config.budget.raised(figures.limits)
        trust = None if start is None else ScoreTrust.of(start.score_trust, start.shared_because)
        proposals = figures.proposals if ended is None else ended.proposals
        spent = self.projection.spent
        cost = Cost(figures.spent.rollouts, proposals, spent.tokens, spent.cost)
        return RunRow(
            name=self.name,
            state=find_state(self.path, None if ended is None else ended.reason),
            paused=self.projection.paused,
            stop_reason=None if ended is None else str(ended.reason),
            error=None if ended is None else ended.error,
            seconds=seconds,
            directory=str(self.path),
            branched_from=None if config.branch is None else _branch_said(config.branch),
            algorithm=config.algorithm.name,
            mode=config.algorithm.mode,
            task=(start and start.task) or config.task.name,
            backend=config.llm.backend,
            simulated=config.llm.backend in SIMULATED_BACKENDS and self._call > 0,
            kind=self.projection.candidates.kind_of_artifact,
            budget=dict(budget.by_name()),
            used=used(budget, seconds, cost, ("rollouts", "proposals", "tokens", "dollars")),
            config=self._toml,
            config_digest=blake2b(self._toml.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest(),
            version=figures.version,
            proposals=proposals,
            best=figures.best if ended is None else ended.best,
            best_score=figures.best_score if ended is None else ended.best_score,
            low=low,
            high=high,
            seed_score=figures.seed_score if ended is None else ended.seed_score,
            examples=None if start is None else start.examples,
            score_trust=None if trust is None else str(trust),
        )


def _branch_said(point: BranchSettings) -> str:
    version = "" if point.version is None else f", version {point.version}"
    return f"{point.candidate} of {point.run}{version}"


def run_name(directory: Path) -> str:
    """The name of the run in a directory: that of the directory, whatever path leads to it."""
    return directory.resolve().name


def distinct(names: Sequence[str]) -> list[str]:
    """Unique names for runs with these names: if several have the same, the later ones get a number."""
    taken: list[str] = []
    for first in names:
        name, number = first, 1
        while name in taken:
            number += 1
            name = f"{first} ({number})"
        taken.append(name)
    return taken
