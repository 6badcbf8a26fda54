"""Exports a run as tables for other tools, and its best artifact as plain files.

Rows are written as they are read. Memory holds the numbers of the events that change each candidate but, of all texts,
only those of the best artifact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from flowevolve.core.event_body import EventBody, OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.logged_changes import LoggedAdd, LoggedAnnotate, LoggedChange, LoggedMove, LoggedVeto
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.journal.export_files import JsonLines, Parquet, Row, Table
from flowevolve.journal.files import ELSEWHERE, open_text, refuse_link, writing
from flowevolve.journal.reading import RecordedCall, RecordedRun

Format = Literal["jsonl", "parquet"]
BEST = "best"
"""The folder of the best artifact's files."""

_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "candidates": {
        "id": "text",
        "status": "text",
        "vetoed": "yes or no",
        "pool": "text",
        "parents": "texts",
        "operator": "text",
        "born": "integer",
        "scores": "numbers by name",
        "mean": "number",
        "assessed_score": "number",
        "failure": "text",
        "attributes": "json",
        "score_trust": "text",
        "kind": "text",
        "artifact": "text",
        "components": "texts by name",
    },
    "scores": {"candidate": "text", "example": "text", "score": "number"},
    "lineage": {"child": "text", "parent": "text"},
    "calls": {
        **dict.fromkeys(("role", "model", "stage", "item"), "text"),
        "index": "integer",
        "candidate": "text",
        "template": "text",
        "messages": "messages",
        "temperature": "number",
        **dict.fromkeys(("max_tokens", "seed"), "integer"),
        **dict.fromkeys(("thinking", "reply", "error", "finish_reason"), "text"),
        **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens"), "integer"),
        "cached": "yes or no",
        "attempts": "integer",
        **dict.fromkeys(("queued", "started", "finished"), "number"),
        "after_event": "integer",
    },
}
"""The tables and their columns, with the type that each column has in a Parquet file."""


@dataclass(frozen=True, slots=True)
class Exported:
    """Where an export and the files of its best artifact are, and how many rows its two large tables have."""

    out: Path
    best: tuple[Path, ...]
    candidates: int
    calls: int
    trust: ScoreTrust | None
    """Whether programs could forge their scores; None for tasks that run no programs, and for older runs."""


def export(path: Path, out: Path | None = None, file_format: Format = "jsonl") -> Exported:
    """Write tables ``candidates``, ``scores``, ``lineage`` and ``calls``, and ``best/`` with one file per component.

    The run in ``path`` may still be going on; what it had done when the export began is exported. The files are written
    to ``out``, by default the folder ``export`` in ``path``. They replace the files of an earlier export, and the files
    of an earlier best artifact are removed.

    Raises:
        DamagedError: if not everything is as it was written.
        InputError: if there is no run, the files can't be written, Parquet is asked for and pyarrow is missing, or a
            folder to write into is a link that ``out`` did not name: a run directory may come from somebody else.
    """
    if out is None:
        out = path / "export"
        refuse_link(out)
    refuse_link(out / BEST)
    with RecordedRun(path) as recorded, writing(out, ELSEWHERE), ExitStack() as stack:
        recorded.check()
        last = recorded.last_event()
        run = _Run(recorded, upto=-1 if last is None else last[0])
        out.mkdir(parents=True, exist_ok=True)
        tables: dict[str, Table] = {}
        for name, columns in _COLUMNS.items():
            file = out / f"{name}.{file_format}"
            file.unlink(missing_ok=True)  # it may be a link to a file elsewhere
            table: Table = JsonLines(file) if file_format == "jsonl" else Parquet(file, columns)
            tables[name] = stack.enter_context(closing(table))
        best, all_files = dict[str, str](), set[str]()
        for row in run.candidates():
            _write_candidate(row, tables)
            files = _files(row["components"])
            all_files.update(files)
            if row["id"] == run.best:
                best = files
        _write_best(out / BEST, best, all_files)
        for call in run.calls():
            tables["calls"].write(_call_row(call))
        best_files = tuple(out / BEST / file for file in best)
        return Exported(out, best_files, tables["candidates"].rows, tables["calls"].rows, run.trust)


def candidate_rows(recorded: RecordedRun) -> Iterator[dict[str, Any]]:
    """The rows of table ``candidates`` as the run has recorded them up to now."""
    last = recorded.last_event()
    return _Run(recorded, upto=-1 if last is None else last[0]).candidates()


class _Run:
    """What a run had recorded up to one event."""

    def __init__(self, recorded: RecordedRun, upto: int) -> None:
        self._recorded = recorded
        self._upto = upto
        self._touched: dict[str, list[int]] = defaultdict(list)
        self.best: str | None = None
        start = recorded.start
        self.trust = None if start is None else ScoreTrust.of(start.score_trust, start.shared_because)
        for event in takewhile(self._had_happened, recorded.events()):
            for candidate in _candidates_in(event.body):
                self._touched[candidate].append(event.seq)
            if isinstance(event.body, PoolCommitted):
                self.best = event.body.best

    def candidates(self) -> Iterator[dict[str, Any]]:
        """One row per candidate, in the order in which they were proposed."""
        for proposal in takewhile(self._had_happened, self._recorded.proposals()):
            proposed = proposal.body
            assert isinstance(proposed, CandidateProposed)
            touched = self._touched.get(proposed.candidate, ())
            yield _fold(proposed, [self._recorded.event(seq).body for seq in touched], self.trust)

    def calls(self) -> Iterator[RecordedCall]:
        return takewhile(lambda call: call.seq <= self._upto, self._recorded.calls())

    def _had_happened(self, event: Event) -> bool:
        return event.seq <= self._upto


def _write_candidate(row: Row, tables: Mapping[str, Table]) -> None:
    tables["candidates"].write(row)
    for example, score in row["scores"].items():
        tables["scores"].write({"candidate": row["id"], "example": example, "score": score})
    for parent in row["parents"]:
        tables["lineage"].write({"child": row["id"], "parent": parent})


def _files(components: Mapping[str, str]) -> dict[str, str]:
    """The texts by file name, which is the name of the component, with an ending if that has none, and with a number if
    the name is taken.
    """
    # A name may hold anything: a slash, for example, or a lone surrogate.
    quoted = {name: Path(quote(name, " ", errors="backslashreplace")) for name in components}
    files: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(components, key=lambda name: (not quoted[name].suffix, name)):
        path = quoted[name] if quoted[name].suffix else Path(f"{quoted[name]}.txt")
        file, number = path.name, 1
        while file.casefold() in taken:  # not every file system distinguishes upper and lower case
            number += 1
            file = f"{path.stem}-{number}{path.suffix}"
        taken.add(file.casefold())
        files[file] = components[name]
    return files


def _write_best(folder: Path, files: Mapping[str, str], earlier: Collection[str]) -> None:
    """Write the best artifact's files; ``earlier`` are those that an earlier export may have left."""
    for file in earlier:
        (folder / file).unlink(missing_ok=True)
    if files:
        folder.mkdir(exist_ok=True)
    for file, text in files.items():
        (folder / file).unlink(missing_ok=True)
        with open_text(folder / file, "w") as opened:
            opened.write(text)


def _candidates_in(body: EventBody) -> Iterable[str]:
    """The candidates whose status, scores, assessment or attributes this event changes."""
    match body:
        case CandidateRejected(candidate=candidate):
            return [candidate]
        case OwnEvent(kind="candidate.assessed", data={"candidate": str(candidate)}):
            return [candidate]
        case PoolCommitted(changes=changes):
            return dict.fromkeys(name for change in changes if (name := _candidate_of(change)) is not None)
    return ()


def _candidate_of(change: LoggedChange) -> str | None:
    match change:
        case LoggedAdd(add=candidate) | LoggedMove(move=candidate) | LoggedAnnotate(annotate=candidate):
            return candidate
        case LoggedVeto(veto=candidate):
            return candidate
    return None


def _fold(proposed: CandidateProposed, touched: Iterable[EventBody], trust: ScoreTrust | None) -> dict[str, Any]:
    """A candidate as these events left it."""
    state: dict[str, Any] = {
        "status": "proposed",
        "vetoed": False,
        "pool": None,
        "scores": {},
        "attributes": proposed.attributes,
        "assessed_score": None,
        "failure": None,
    }
    for body in touched:
        match body:
            case OwnEvent(data=data):
                state |= {"assessed_score": data.get("score"), "failure": data.get("failure")}
            case PoolCommitted(changes=changes):
                for change in changes:
                    if _candidate_of(change) == proposed.candidate:
                        _apply(change, state)
            case _:
                state["status"] = "rejected"
    scores = state["scores"]
    return {
        "id": proposed.candidate,
        "status": state["status"],
        "vetoed": state["vetoed"],
        "pool": state["pool"],
        "parents": list(proposed.parents),
        "operator": proposed.operator,
        "born": proposed.born,
        "scores": scores,
        "mean": sum(scores.values()) / len(scores) if scores else None,
        "assessed_score": state["assessed_score"],
        "failure": state["failure"],
        "attributes": state["attributes"],
        "score_trust": None if trust is None else trust.kind,
        "kind": proposed.kind_of_artifact,
        "artifact": proposed.artifact,
        "components": proposed.components,
    }


def _apply(change: LoggedChange, state: dict[str, Any]) -> None:
    """Apply a change to what is known of a candidate, as `flowevolve.core.pool.Pool.commit` does."""
    match change:
        case LoggedAdd(pool=pool, status=status, scores=scores, attributes=attributes):
            state |= {"status": status, "pool": pool, "scores": scores, "attributes": attributes}
        case LoggedMove(status=moved, scores=new_scores):
            state |= {"status": moved, "scores": state["scores"] if new_scores is None else new_scores}
        case LoggedAnnotate(attributes=attributes, scores=new_scores):
            state["scores"] = state["scores"] if new_scores is None else new_scores
            state["attributes"] = {**state["attributes"], **attributes}
        case LoggedVeto(stands=stands):
            state["vetoed"] = stands


def _call_row(call: RecordedCall) -> dict[str, Any]:
    messages, usage = call.messages, call.usage
    return {
        "role": call.role,
        "model": call.model,
        "stage": call.stage,
        "item": call.item,
        "index": call.index,
        "candidate": call.candidate,
        "template": call.template,
        "messages": None if messages is None else [{"role": each.role, "content": each.content} for each in messages],
        "temperature": call.temperature,
        "max_tokens": call.max_tokens,
        "seed": call.seed,
        "thinking": call.thinking,
        "reply": call.reply,
        "error": call.error,
        "finish_reason": call.finish_reason,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "completion_tokens": None if usage is None else usage.completion_tokens,
        "cached_tokens": None if usage is None else usage.cached_tokens,
        "cached": call.cached,
        "attempts": call.attempts,
        "queued": call.queued,
        "started": call.started,
        "finished": call.finished,
        "after_event": call.seq,
    }
