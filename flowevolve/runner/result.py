"""The result of a run: what Python callers get and ``result.json`` holds (contract: docs/reference/result.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.words import counted
from flowevolve.core.artifact import Artifact
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.stop_reasons import StopReason
from flowevolve.engine.report import RunReport
from flowevolve.journal.files import write_whole, writing
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.run_directory import RESULT, read_result
from flowevolve.llm.client.accounting import Totals
from flowevolve.llm.client.traffic import TrafficStats
from flowevolve.llm.scheduling.admission import LoadSummary
from flowevolve.runner import result_view as view
from flowevolve.runner.candidates import FoundCandidate, Step, in_directory, in_pool, lineage, read_candidate, table_row
from flowevolve.runner.result_parts import (
    Best,
    HeldOut,
    ModelCounts,
    Table,
    read_by_model,
    read_server,
    read_totals,
    read_traffic,
    read_trust,
    stage_to_json,
    totals_to_json,
    trust_to_json,
)
from flowevolve.runner.unfinished import unfinished_result
from flowevolve.telemetry.failed_rollouts import FailedRollouts
from flowevolve.telemetry.result_words import (
    cut_off,
    how_many_failed,
    no_better,
    perfect_minibatches,
    reached_before,
    stopped_by,
    tested_on,
    too_little,
    unanswered,
)
from flowevolve.telemetry.role_replies import CutCount, EmptyCount, many_poor, poor_to_json, read_cut, read_empty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Loaded:
    """The source of a result that was loaded or unpickled: the table of its ``result.json``, and its candidates."""

    table: Table
    candidates: Sequence[FoundCandidate]


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a finished run. It can be pickled and saved to a file; what `load` returns has all of it but
    ``report``.
    """

    algorithm: str
    mode: str
    task: str
    backend: str
    simulated: bool
    stop_reason: StopReason
    wall_seconds: float
    """How long it took, by the event loop's clock."""
    proposals: int
    accepted: int
    seed_score: float | None
    best: Best | None
    source: RunReport | Loaded
    """Where all other figures come from."""
    llm: Totals
    mean_in_flight: float
    cancelled: int = 0
    """Requests cancelled on the wire."""
    held_out: HeldOut | None = None
    frontier: Sequence[Best] = ()
    """The candidates that no other one beats in every respect, as the algorithm sees it."""
    server: LoadSummary | None = None
    """The load that the server reported, if the admission policy looked at it."""
    by_model: Mapping[str, ModelCounts] = field(default_factory=dict)
    traffic: TrafficStats = field(default_factory=TrafficStats)
    """Endpoints, rate limits and hedging."""
    directory: Path | None = None
    """The run directory, if there is one; not kept in files and pickles."""
    score_trust: ScoreTrust | None = None
    """Whether programs could forge their scores; None for tasks without programs, and in older files."""
    cut_replies: Mapping[str, CutCount] = field(default_factory=dict)
    """How many replies the token limit cut off, by role, for roles with any."""
    failed_rollouts: FailedRollouts = field(default_factory=FailedRollouts)
    """How many rollouts got no score, for lack of an answer or because of an error in the task's code."""
    reached_before: bool = False
    """Whether what stopped the run had been reached before it was resumed, so that nothing new was begun."""
    empty_replies: Mapping[str, EmptyCount] = field(default_factory=dict)
    """How many replies had no text though they were not cut off, by role, for roles with any."""

    @property
    def report(self) -> RunReport:
        """The engine's report on the run, with its pool.

        Raises:
            InputError: if the result was loaded or unpickled.
        """
        if isinstance(self.source, Loaded):
            raise InputError(
                "result.report is not kept in files and pickles; its figures are in result.to_json(), and its "
                "candidates in result.candidates"
            )
        return self.source

    @cached_property
    def candidates(self) -> Sequence[FoundCandidate]:
        """All candidates, oldest first. Without a run directory, those that were rejected before they got into the pool
        are missing, as they are not kept in memory.
        """
        if isinstance(self.source, Loaded):
            return self.source.candidates
        if self.directory is not None and (self.directory / JOURNAL).is_file():
            return tuple(in_directory(self.directory))
        return tuple(in_pool(self.source.pool))

    def lineage(self, candidate_id: str | None = None) -> list[Step]:
        """The path from the seed to a candidate, by default to the best.

        Raises:
            InputError: if there is no such candidate.
        """
        if candidate_id is None:
            if self.best is None:
                raise InputError("lineage: no candidate was confirmed; give the id of one of result.candidates")
            candidate_id = self.best.id
        return lineage(self.candidates, candidate_id)

    def to_pandas(self) -> pd.DataFrame:
        """The candidates as a pandas data frame, one per row, with a column for each component.

        Raises:
            InputError: if pandas is not installed.
        """
        try:
            import pandas as pd  # noqa: PLC0415 - an optional extra
        except ImportError:
            raise InputError("result.to_pandas needs pandas, which is not installed: pip install pandas") from None
        return pd.DataFrame([table_row(each) for each in self.candidates])

    def plot(self, figure: str = "score") -> Figure:
        """A figure of the run, drawn with matplotlib, which notebooks show: ``score`` (over time), ``score_tokens``,
        ``timeline``, ``lineage``, ``heat_map`` or ``staleness``. Its ``savefig`` writes it to a file.

        Raises:
            InputError: if there is no such figure, it would be empty, the run left no run directory, or matplotlib is
                not installed.
        """
        from flowevolve.page.figures.catalog import draw  # noqa: PLC0415 - slow to load, and few results are drawn

        return draw(self._recorded("plot"), figure)

    def write_page(self, path: Path | str | None = None) -> Path:
        """Write the run's page, a single HTML file that needs no network, and return its path.

        By default it is ``report.html`` in the run directory.

        Raises:
            InputError: if the run left no run directory, or the file can't be written.
        """
        from flowevolve.page.report.report import REPORT, write_report  # noqa: PLC0415 - as above

        directory = self._recorded("write_page")
        return write_report([directory], directory / REPORT if path is None else Path(path))

    def _recorded(self, wanted: str) -> Path:
        """The run directory. Raises: InputError if there is none."""
        if self.directory is None or not (self.directory / JOURNAL).is_file():
            raise InputError(
                f"result.{wanted} is made from a run directory, which this result does not have; give the run one with "
                "out=, or load the result from there: Result.load('runs/NAME')"
            )
        return self.directory

    def save(self, path: Path | str) -> Path:
        """Write the result and its candidates to a file, as JSON, and return its path.

        Raises:
            InputError: if it can't be written.
        """
        file = Path(path)
        if file.is_dir():
            raise InputError(f"{file} is a directory; give the path of a file, such as {file / 'saved.json'}")
        if file.name == RESULT and (file.parent / JOURNAL).is_file():
            raise InputError(
                f"{file} is the run's own file; give another name, or load the run with "
                f"Result.load({str(file.parent)!r})"
            )
        with writing(file):
            write_whole(file, [json.dumps(self._saved(), indent=2)])
        return file

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Load the result that was saved to a file, or that of the run in a directory. If that run was stopped or
        killed before it wrote one, this is the result so far, without ``frontier``.

        Raises:
            InputError: if there is none, or the run has not begun or is still going on.
        """
        place = Path(path)
        if place.is_dir():
            table = read_result(place) if (place / RESULT).is_file() else unfinished_result(place)
            saved = {"result": table, "candidates": [each.to_json() for each in in_directory(place)]}
            return replace(cls._checked(saved, place), directory=place)
        try:
            saved = json.loads(place.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{place}: no such file or run directory") from None
        except OSError as error:
            raise InputError(f"{place} can't be read: {reason_of(error)}") from None
        except ValueError as error:
            raise InputError(f"{place} is not a saved result, such as Result.save writes ({error})") from None
        return cls._checked(saved, place)

    def to_json(self) -> dict[str, object]:
        """The contents of ``result.json``."""
        if isinstance(self.source, Loaded):
            return dict(self.source.table)
        report = self.source
        return {
            "schema": SCHEMA,
            "algorithm": self.algorithm,
            "mode": self.mode,
            "task": self.task,
            "backend": self.backend,
            "simulated": self.simulated,
            "stop_reason": self.stop_reason,
            **({"reached_before": True} if self.reached_before else {}),
            "error": None if report.error is None else str(report.error),
            "wall_seconds": round(self.wall_seconds, 3),
            "seed_score": self.seed_score,
            "best": None if self.best is None else self.best.to_json(),
            "frontier": [{"id": each.id, "score": each.score, "metrics": dict(each.metrics)} for each in self.frontier],
            "held_out": None if self.held_out is None else self.held_out.to_json(),
            "pool_version": report.pool.version,
            "proposals": self.proposals,
            "unchanged": report.unchanged,
            "accepted": self.accepted,
            "rollouts": report.spent.rollouts,
            "failed_rollouts": asdict(self.failed_rollouts),
            "overshoot": report.overshoot,
            "flow_limit": None if report.flow_limit is None else asdict(report.flow_limit),
            "held_items": report.held,
            "held_at": report.held_at,
            "llm": {
                **totals_to_json(self.llm),
                "cancelled": self.cancelled,
                **poor_to_json(self.cut_replies, self.empty_replies),
                "mean_in_flight": round(self.mean_in_flight, 3),
                "by_model": {
                    name: {**totals_to_json(counts.totals), "accepted": counts.accepted}
                    for name, counts in self.by_model.items()
                },
                **asdict(self.traffic),
            },
            **trust_to_json(self.score_trust),
            "server": None if self.server is None else self.server.to_json(),
            "staleness": asdict(report.staleness),
            "speculation": asdict(report.speculation),
            "racing": asdict(report.racing),
            "replies": report.replies.to_json(),
            "stages": {name: stage_to_json(stage) for name, stage in report.stages.items()},
        }

    def __repr__(self) -> str:
        table = self.to_json()
        simulated = " (simulated)" if self.simulated else ""
        done = (
            f"{counted(self.proposals, 'proposal')} in {self.wall_seconds:.1f} s, stopped by {self._stopped_by(table)}"
        )
        fresh = "" if self.best is None or self.best.fresh is None else f" ({self.best.fresh})"
        result = f"{self.algorithm} on {self.task}{simulated}: {self._way()}{fresh}, {done}"
        return f"<Result {'; '.join([result, *self._troubles(table)])}>"

    def _stopped_by(self, table: Mapping[str, object], after: str = "") -> str:
        return stopped_by(self.stop_reason, perfect_minibatches(table), f"{after}{reached_before(table)}")

    def _troubles(self, table: Mapping[str, object]) -> list[str]:
        """Warnings about the run's calls and rollouts, in words."""
        warnings = (unanswered(table), too_little(table), cut_off(table), how_many_failed(table))
        return [*filter(None, warnings), *many_poor(self.cut_replies, self.empty_replies)]

    def _way(self) -> str:
        """The seed's score and the best one, in words."""
        best = self.best
        if best is None:
            return view.scores(self.seed_score, None, None)
        remark = no_better(self.seed_score, best.score, as_seed=best.as_seed)
        return f"{view.scores(self.seed_score, best.score, best.interval)}{remark}"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        best, way, table = self.best, self._way(), self.to_json()
        rows = [
            ("run", f"{self.algorithm} ({self.mode}) on {self.task}, {self.backend}"),
            ("score", way if best is None else f"{way} ({best.id})"),
        ]
        if best is not None and best.fresh is not None:
            rows.append(("fresh score", str(best.fresh)))
        if self.score_trust is not None:
            rows.append(("scores", str(self.score_trust)))
        if self.held_out is not None:
            held_out = view.scores(self.held_out.seed_score, self.held_out.best_score, self.held_out.best_interval)
            rows.append(("held out", f"{held_out} {tested_on(self.held_out.examples, self.held_out.failed)}"))
        tokens = self.llm.usage.total_tokens
        dollars = f", {self.llm.dollars:.4f} dollars" if self.llm.dollars else ""
        rows += [
            ("proposals", f"{self.proposals}, accepted {self.accepted}"),
            ("LLM", f"{counted(self.llm.requests, 'request')} ({self.llm.failed} failed), {tokens} tokens{dollars}"),
            *(("take care", said) for said in self._troubles(table)),
            ("stopped by", self._stopped_by(table, f" after {self.wall_seconds:.1f} s")),
        ]
        return view.html(rows, {} if best is None else best.components)

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], Result], tuple[dict[str, object]]]:
        return Result._read, (self._saved(),)

    def _saved(self) -> dict[str, object]:
        return {"result": self.to_json(), "candidates": [each.to_json() for each in self.candidates]}

    @classmethod
    def _checked(cls, saved: Table, place: Path) -> Self:
        """Raises: InputError if what was read from a place is no result."""
        if place.name == RESULT and "schema" in saved:
            raise InputError(f"{place} belongs to a run; load the run: Result.load({str(place.parent)!r})")
        try:
            if saved["result"]["schema"] != SCHEMA:
                raise InputError(f"{place} is not a result that this version of flowevolve can read")
            return cls._read(saved)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{place} is not a saved result, such as Result.save writes ({error!r})") from None

    @classmethod
    def _read(cls, saved: Mapping[str, Any]) -> Self:
        """Raises: KeyError, TypeError, ValueError if something is missing."""
        table, candidates = saved["result"], [read_candidate(each) for each in saved["candidates"]]
        texts = {each.id: each.artifact for each in candidates}
        best, llm, held_out = table["best"], table["llm"], table.get("held_out")
        return cls(
            algorithm=table["algorithm"],
            mode=table["mode"],
            task=table["task"],
            backend=table["backend"],
            simulated=table["simulated"],
            stop_reason=StopReason(table["stop_reason"]),
            wall_seconds=table["wall_seconds"],
            proposals=table["proposals"],
            accepted=table["accepted"],
            seed_score=table["seed_score"],
            best=None if best is None else Best.read(best, texts.get(best["id"]) or Artifact(best["components"])),
            source=Loaded(table, candidates),
            llm=read_totals(llm),
            mean_in_flight=llm["mean_in_flight"],
            cancelled=llm.get("cancelled", 0),
            held_out=None if held_out is None else HeldOut.read(held_out),
            frontier=[Best.read(each, texts[each["id"]]) for each in table.get("frontier", ()) if each["id"] in texts],
            server=read_server(table.get("server")),
            by_model=read_by_model(llm),
            traffic=read_traffic(llm),
            score_trust=read_trust(table),
            cut_replies=read_cut(llm.get("cut_replies")),
            empty_replies=read_empty(llm.get("empty_replies")),
            failed_rollouts=FailedRollouts.read(table.get("failed_rollouts")),
            reached_before=table.get("reached_before", False),
        )
