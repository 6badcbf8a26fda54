"""Reads what a run has recorded, during the run or after it, without disturbing it.

A run directory is opened read-only, and rows are fetched in pages, because a long read would keep SQLite from folding
the write-ahead log into the journal. Journals of all schemas can be read. In schemas 1 and 2 the times of calls are
those of the event loop.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord, CallScope, RoleReplies
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import CandidateProposed, RunStarted
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.journal.config_file import read_config
from flowevolve.journal.examination import examine
from flowevolve.journal.opening import JOURNAL, DamagedError, OpenedJournal, reading
from flowevolve.journal.tables import SCHEMA_VERSION, find_schema
from flowevolve.journal.texts import unpack
from flowevolve.journal.views import VIEWS
from flowevolve.llm.client.accounting import Spending, Totals

Body = TypeVar("Body", bound=EventBody)
CONFIG = "config.toml"
PAGE = 500
"""Rows fetched at a time."""

_EVENTS = "SELECT seq, t, kind, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
_PROPOSALS = """
SELECT seq, t, kind, data FROM events WHERE kind = 'candidate.proposed' AND seq > ? ORDER BY seq LIMIT ?
"""
_OF_KIND = "SELECT seq, t, kind, data FROM events WHERE seq > ? AND kind = ? ORDER BY seq LIMIT ?"
_CALLS = "SELECT * FROM recorded_calls WHERE id > ? ORDER BY id LIMIT ?"
_CALLS_WITHOUT_TEXTS = """
SELECT id, seq, role, model, stage, item, idx, candidate, NULL AS messages, temperature, max_tokens, seed,
    NULL AS reply, error, finish_reason, prompt_tokens, completion_tokens, cached_tokens, attempts, queued, started,
    finished, cached, NULL AS thinking, template, NULL AS checksum
FROM recorded_calls WHERE id > ? ORDER BY id LIMIT ?
"""
_HEADS = """
SELECT id, seq, role, model, stage, item, idx, candidate, error, prompt_tokens, completion_tokens, cached_tokens, cached
FROM recorded_calls WHERE id > ? ORDER BY id LIMIT ?
"""
_CALLS_OF = "SELECT * FROM recorded_calls WHERE stage = ? AND (item = ? OR item >= ? AND item < ?) ORDER BY id"
_TOTALS = """
SELECT role, model, stage, sum(NOT cached), sum(NOT cached AND error IS NOT NULL),
    sum(iif(cached, 0, attempts - 1)), sum(iif(cached, 0, prompt_tokens)), sum(iif(cached, 0, completion_tokens)),
    sum(iif(cached, 0, cached_tokens)), sum(iif(cached, 0, finished - started)), sum(cached),
    sum(iif(cached, prompt_tokens + completion_tokens, 0)),
    sum(NOT cached AND (coalesce(error LIKE 'CutWhileThinkingError:%', 0) OR
        coalesce(finish_reason = 'length' AND trim(reply) = '', 0)))
FROM recorded_calls GROUP BY role, model, stage, candidate ORDER BY min(id)
"""
_REPLIES = """
SELECT role, count(*), sum(finish_reason IS 'length'),
    sum(finish_reason IS NOT 'length' AND typeof(reply) = 'text' AND trim(reply, char(9, 10, 11, 12, 13, 32)) = '')
FROM recorded_calls WHERE error IS NULL GROUP BY role ORDER BY min(id)
"""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A finished LLM call as the journal has it. Times are seconds since the run began.

    ``seq`` is the number of the last event before it (-1 if there was none, or the journal is of an old schema).
    ``messages`` and ``reply`` are None where `flowevolve.journal.compact` dropped their texts, ``messages`` also where
    a repair found them damaged. A call that failed has an ``error`` that says how, and a ``usage`` only if its server
    counted tokens all the same.
    """

    id: int
    seq: int
    role: str
    model: str
    stage: str
    item: str
    index: int
    candidate: str | None
    messages: tuple[Message, ...] | None
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    reply: str | None
    error: str | None
    finish_reason: str | None
    usage: Usage | None
    attempts: int
    queued: float
    started: float
    finished: float
    cached: bool
    thinking: str | None = None
    """What the model thought before it answered, if it did."""
    template: str | None = None
    """Name and version of the template that the prompt was written from, as ``NAME@VERSION``."""

    @property
    def answer(self) -> ChatReply | None:
        """The reply to a chat as the client received it; None if there is none, or its text was dropped."""
        if self.reply is None:
            return None
        usage, finish_reason, thinking = self.usage or Usage(), self.finish_reason or "stop", self.thinking or ""
        return ChatReply(self.reply, usage, finish_reason, self.model, cached=self.cached, thinking=thinking)


class CallHead(NamedTuple):
    """A call without its texts and times, and ``seq``, the number of the last event before it."""

    seq: int
    record: CallRecord


class RecordedRun:
    """A run directory, opened for reading. A context manager; or `close` it.

    Raises:
        InputError: if it is no run directory, or what it holds can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = OpenedJournal(path)
        try:
            with reading(path):
                schema = find_schema(self._journal.database)
                if schema is None:
                    raise InputError(
                        f"{path / JOURNAL} is empty, as the run never began; to start it, call flowevolve run CONFIG "
                        f"--out {path}"
                    )
                if schema not in VIEWS:
                    raise InputError(
                        f"{path / JOURNAL} was written by a later version of flowevolve (schema {schema}), and this "
                        f"one reads schemas up to {SCHEMA_VERSION}; install the later one"
                    )
                self._journal.database.executescript(VIEWS[schema])
        except BaseException:
            self._journal.close()
            raise
        self.schema: int = schema
        self._texts: dict[int, str] = {}

    def close(self) -> None:
        self._journal.close()

    def check(self, *, fields: bool = False) -> None:
        """Check that everything recorded is there and as it was written, as far as checksums can tell.

        This takes about three seconds for 100,000 calls. The run may still be going on. With ``fields`` every event
        must also have the fields of its kind.

        Raises:
            DamagedError: if something is missing or altered.
        """
        damage = examine(self._journal.database, self.schema, fields=fields).damage
        if damage is not None:
            raise DamagedError(self.path, damage)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def config(self) -> dict[str, object]:
        """The configuration with which the run began or last went on: the journal's or, in one of an earlier version,
        that of ``config.toml``.

        Raises:
            InputError: if it can't be read.
        """
        return self.last_config or self.edited_config

    @property
    def edited_config(self) -> dict[str, object]:
        """The table in ``config.toml``, which somebody may have edited; if the file is gone, `last_config`.

        Raises:
            InputError: if it can't be read.
        """
        return read_config(self.path / CONFIG, self.last_config)

    @property
    def last_config(self) -> dict[str, object] | None:
        """The configuration with which the run began or last went on; None in a journal of an earlier version."""
        text = self.meta("config")
        config: dict[str, object] | None = None if text is None else json.loads(text)
        return config

    def meta(self, key: str) -> str | None:
        row = self._one("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else unpack(row[0])

    @property
    def start(self) -> RunStarted | None:
        """The event with which the run began; None if the run has not begun. Other events may come before it."""
        return next(self.events_of(RunStarted), None)

    @property
    def given(self) -> frozenset[str] | None:
        """The names of what the run was given as objects; None if the run has not begun."""
        return None if self.start is None else frozenset(self.start.given or ())

    def last_event(self) -> tuple[int, float] | None:
        """Number and time of the last event; None if there is none yet."""
        row = self._one("SELECT seq, t FROM events ORDER BY seq DESC LIMIT 1")
        return None if row is None else (row[0], row[1])

    def seconds(self) -> float:
        """Seconds from the beginning of the run to its last event or, if that is later, to the end of its last call."""
        last = self.last_event()
        row = self._one("SELECT max(finished) FROM recorded_calls") if self.schema > 2 else None
        return max(0.0 if last is None else last[1], (row and row[0]) or 0.0)

    def event(self, seq: int) -> Event:
        """The event with this number, which must be there."""
        row = self._one("SELECT seq, t, kind, data FROM events WHERE seq = ?", seq)
        assert row is not None
        return self._event(row)

    def events(self, after: int = -1) -> Iterator[Event]:
        """The events after this number, in order."""
        return map(self._event, self._pages(_EVENTS, after))

    def events_of(self, kind: type[Body]) -> Iterator[Body]:
        """The bodies of all events of a kind, in order."""
        for row in self._pages(_OF_KIND, -1, kind.kind):
            body = self._event(row).body
            assert isinstance(body, kind)
            yield body

    def proposals(self) -> Iterator[Event]:
        """The ``candidate.proposed`` events, in order."""
        return map(self._event, self._pages(_PROPOSALS, -1))

    def artifacts(self, ids: Collection[str]) -> dict[str, Artifact]:
        """The artifacts with these ids, by id; those that were never proposed are left out."""
        wanted, found = set(ids), dict[str, Artifact]()
        for event in self.proposals():
            if isinstance(event.body, CandidateProposed) and event.body.artifact in wanted:
                found[event.body.artifact] = event.body.proposal().artifact
                wanted.discard(event.body.artifact)
            if not wanted:
                break
        return found

    def payload(self, item: str) -> bytes | None:
        """The payload of an item of an open flow, to be given to `flowevolve.journal.payloads.load`."""
        row = self._one("SELECT data FROM payloads WHERE item = ?", item) if self.schema > 2 else None
        return None if row is None else bytes(row[0])

    def payloads(self) -> dict[str, bytes]:
        """The payloads of all items of open flows, by item."""
        rows = self._journal.rows("SELECT item, data FROM payloads") if self.schema > 2 else []
        return {str(item): bytes(data) for item, data in rows}

    def calls(self, after: int = 0, *, texts: bool = True) -> Iterator[RecordedCall]:
        """The calls after this number, in the order in which they ended.

        Without ``texts`` they have no messages, replies and thoughts, as if `flowevolve.journal.compact` had dropped
        them.
        """
        return map(self._call, self._pages(_CALLS if texts else _CALLS_WITHOUT_TEXTS, after))

    def call(self, number: int) -> RecordedCall | None:
        """The call with this number; None if there is none."""
        row = self._one("SELECT * FROM recorded_calls WHERE id = ?", number)
        return None if row is None else self._call(row)

    def call_heads(self) -> Iterator[CallHead]:
        """All calls without their texts and times, in the order in which they ended."""
        for row in self._pages(_HEADS, 0):
            _, seq, role, model, stage, item, index, candidate, error, prompt, completion, cached_tokens, cached = row
            scope = CallScope(unpack(stage), unpack(item), _maybe_text(candidate), 0, index)
            usage = Usage() if prompt is None else Usage(prompt, completion, cached_tokens)
            reply = ChatReply("", usage, cached=bool(cached)) if error is None else None
            request, lost = ChatRequest(unpack(model), ()), Usage() if error is None else usage
            record = CallRecord(unpack(role), scope, request, reply, _maybe_text(error), 1, 0.0, 0.0, 0.0, lost)
            yield CallHead(seq, record)

    def calls_of(self, stage: str, item: str) -> list[RecordedCall]:
        """The calls that a stage made for an item, those for its pieces (``item/…``) included, in order."""
        rows = self._journal.rows(_CALLS_OF, stage, item, f"{item}/", f"{item}0")  # "0" follows "/"
        return [self._call(row) for row in rows]

    def totals(self) -> list[Spending]:
        """Totals of all calls by role, model, stage and candidate, for
        `flowevolve.llm.client.accounting.Account.restore`.
        """
        spent = []
        for role, model, stage, *sums in self._journal.rows(_TOTALS):
            requests, failed, retries, prompt, completion, cached_tokens, seconds, cached, cached_calls_tokens, cut = (
                sums
            )
            usage = Usage(prompt or 0, completion or 0, cached_tokens or 0)
            totals = Totals(requests, failed, retries, usage, seconds, None, cached, cached_calls_tokens, 0, cut)
            spent.append(Spending(unpack(role), unpack(model), unpack(stage), totals))
        return spent

    def replies_by_role(self) -> dict[str, RoleReplies]:
        """Counts of the replies by role; vectors count as replies, too."""
        return {unpack(role): RoleReplies(*counts) for role, *counts in self._journal.rows(_REPLIES)}

    def _one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        return next(iter(self._journal.rows(statement, *values)), None)

    def _pages(self, statement: str, after: int, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, fetched a page at a time. Its first parameter is the number after which to go on
        (that of the first column), and its last is the size of a page.
        """
        while page := self._journal.rows(statement, after, *values, PAGE):
            yield from page
            after = page[-1][0]

    def _event(self, row: tuple[Any, ...]) -> Event:
        seq, time, kind, data = row
        with self._unpacking(f"event {seq}"):
            return Event(seq, time, unpack(kind), json.loads(unpack(data)), _directory=self.path)

    @contextmanager
    def _unpacking(self, what: str) -> Iterator[None]:
        """Raise a `DamagedError` if something stored does not have the form in which it was written."""
        try:
            yield
        except (ValueError, TypeError, AttributeError, zlib.error) as error:
            raise DamagedError(self.path, f"{what} can't be read ({type(error).__name__}: {error})") from error

    def _call(self, row: tuple[Any, ...]) -> RecordedCall:
        with self._unpacking(f"call {row[0]}"):
            number, seq, role, model, stage, item, index, candidate, messages, temperature, max_tokens, seed, *rest = (
                row
            )
            reply, error, finish_reason, prompt, completion, cached_tokens, attempts, *rest = rest
            queued, started, finished, cached, thinking, template, _ = rest
            return RecordedCall(
                number,
                seq,
                unpack(role),
                unpack(model),
                unpack(stage),
                unpack(item),
                index,
                _maybe_text(candidate),
                None if messages is None else self._messages(unpack(messages)),
                temperature,
                max_tokens,
                seed,
                _maybe_text(reply),
                _maybe_text(error),
                _maybe_text(finish_reason),
                None if prompt is None else Usage(prompt, completion, cached_tokens),
                attempts,
                queued,
                started,
                finished,
                bool(cached),
                _maybe_text(thinking),
                template,
            )

    def _messages(self, messages: str) -> tuple[Message, ...]:
        """Messages from ``[[role, number of a text], …]``. Up to schema 2, the text itself is in the place of its
        number.
        """
        return tuple(
            Message(role, text if isinstance(text, str) else self._text_number(text))
            for role, text in json.loads(messages)
        )

    def _text_number(self, number: int) -> str:
        text = self._texts.get(number)
        if text is None:
            row = self._one("SELECT data FROM texts WHERE id = ?", number)
            if row is None:
                raise DamagedError(self.path, f"text {number}, to which a call refers, is missing")
            with self._unpacking(f"text {number}"):
                text = unpack(row[0])
            self._texts[number] = text
            if len(self._texts) > PAGE:
                del self._texts[next(iter(self._texts))]
        return text


def _maybe_text(stored: str | bytes | None) -> str | None:
    return None if stored is None else unpack(stored)
