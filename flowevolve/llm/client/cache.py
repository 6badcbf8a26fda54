"""The response cache: replies on disk, keyed by everything that determines them.

Only repeatable requests are cached: those with a sampling seed and those at temperature 0. All others are meant to get
a new answer each time. The key is a digest of backend, model, messages, temperature, max_tokens, seed, stop and extra,
so a hit is the reply of the same backend to the same request. Prompts and API keys are not stored. Several processes
may share one file (SQLite in WAL mode, on a local disk). The file only grows; to empty the cache, delete the file while
no run uses it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.lowlevel

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError, StorageError, reason_of
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import logger
from flowevolve._util.sqlite_writer import Writer
from flowevolve.core.model import ChatReply, ChatRequest, Usage

SCHEMA_VERSION = 1
APPLICATION_ID = 0x666C6563
"""Marks a SQLite file as a response cache, in its header."""
SETTING = "llm.cache.path"
"""The setting that names a run's own cache."""
BUSY_SECONDS = 60.0
"""How long a write waits while another process writes."""

_SCHEMA = f"""
PRAGMA journal_mode=WAL;
PRAGMA application_id={APPLICATION_ID};
PRAGMA user_version={SCHEMA_VERSION};
CREATE TABLE replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL);
"""
_FIND = "SELECT reply FROM replies WHERE key = ?"
_KEEP = "INSERT OR IGNORE INTO replies VALUES (?, ?)"


def reply_key(backend: str, request: ChatRequest) -> bytes | None:
    """The cache key of a backend's reply to this request; None if the request is not repeatable."""
    temperature = request.extra.get("temperature", request.temperature)
    if temperature != 0 and request.extra.get("seed", request.seed) is None:
        return None
    asked = [
        backend,
        request.model,
        [[message.role, message.content] for message in request.messages],
        None if request.temperature is None else float(request.temperature),
        request.max_tokens,
        request.seed,
        request.stop,
        dict(request.extra),
    ]
    return sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).digest()


class ResponseCache:
    """The cache in one file, used from one event loop. `open_cache` opens and closes it.

    Raises:
        InputError: if the file is damaged, is no response cache, or can't be created.
    """

    def __init__(self, path: Path, setting: str = SETTING) -> None:
        self._path = path
        self._setting = setting
        self._unwritten: dict[bytes, str] = {}
        self._flights: dict[bytes, _Flight] = {}
        self._gathering = _Batch()
        self._reading = anyio.Lock(fast_acquire=True)
        with ExitStack() as connections:
            try:
                if not path.exists():
                    _make(path)
                self._reader = connections.enter_context(closing(_connect(path)))
                database = connections.enter_context(closing(_connect(path)))
                _check(self._reader)
                database.execute("BEGIN IMMEDIATE").connection.rollback()  # fails here if the file can't be written
            except (sqlite3.Error, OSError, _ForeignError) as error:
                raise self._unusable(error) from error
            self._connections = connections.pop_all()
        self._writer: Writer[tuple[bytes, str]] = Writer(database, "response cache", _write, self._written)

    @asynccontextmanager
    async def single_flight(self, key: bytes) -> AsyncGenerator[ChatReply | None]:
        """Look a key up and hold it until the block ends: other callers with the same key wait that long.

        Identical concurrent calls are thus sent once: the first caller sends the call inside the ``async with`` and
        stores the reply, and the others find it. If the call fails or is cancelled, the next caller sends it.

        Raises:
            InputError: if the file is damaged.
        """
        flight = self._flights.setdefault(key, _Flight())
        flight.wanted_by += 1
        try:
            async with flight.lock:
                yield await self._find(key)
        finally:
            flight.wanted_by -= 1
            if not flight.wanted_by:
                del self._flights[key]

    def keep(self, key: bytes, reply: ChatReply) -> None:
        """Store a reply, without waiting. This process finds it at once, others find it once it is on disk."""
        text = self._unwritten[key] = _encode(reply)
        self._writer.put((key, text))

    def close(self) -> None:
        """Write what has not been written yet, and close the file.

        Raises:
            StorageError: if something could not be written.
        """
        self._writer.close()
        self._connections.close()
        failure = self._writer.failure
        if failure is not None:
            raise StorageError(
                f"{self._path}: not all replies could be kept for later runs: {reason_of(failure)}; "
                "free some space (nothing else of this run is affected)"
            ) from failure

    async def _find(self, key: bytes) -> ChatReply | None:
        """Look a key up, together with all keys requested during the previous lookup, as each thread call is costly."""
        batch = self._gathering
        batch.keys.append(key)
        if len(batch.keys) > 1:
            await batch.done.wait()
        else:
            with anyio.CancelScope(shield=True):  # the others of the batch wait for it
                await self._find_batch(batch)
            await anyio.lowlevel.checkpoint_if_cancelled()
        if batch.error is not None:
            raise batch.error
        return batch.found.get(key)

    async def _find_batch(self, batch: _Batch) -> None:
        async with self._reading:
            self._gathering = _Batch()
            try:
                batch.found = await in_thread(self._read, batch.keys)
            except (sqlite3.Error, _ForeignError) as error:
                batch.error = self._unusable(error)
            finally:
                batch.done.set()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, ChatReply]:
        found: dict[bytes, ChatReply] = {}
        for key in keys:
            # A reply leaves `_unwritten` only once it is on disk, so this order of looking misses none.
            text = self._unwritten.get(key)
            if text is None:
                row = self._reader.execute(_FIND, (key,)).fetchone()
                text = None if row is None else row[0]
            if text is not None:
                found[key] = _decode(text)
        return found

    def _written(self, rows: Sequence[tuple[bytes, str]]) -> None:
        for key, _ in rows:
            self._unwritten.pop(key, None)

    def _unusable(self, error: Exception) -> InputError:
        return InputError(
            f"{self._path}: can't be used as a response cache: {reason_of(error)}; "
            f"name another file in {self._setting}, or remove this one if nothing else needs it"
        )


@asynccontextmanager
async def open_cache(path: Path, setting: str = SETTING) -> AsyncGenerator[ResponseCache]:
    """Open the cache in this file, which is created if it does not exist. Errors name the ``setting`` it comes from.

    If replies could not be written, this is logged at the end; what the block has done is not affected.

    Raises:
        InputError: if the file is damaged, is no response cache, or can't be created.
    """
    cache = await in_thread(ResponseCache, path, setting)
    try:
        yield cache
    finally:
        with anyio.CancelScope(shield=True):
            try:
                await in_thread(cache.close)
            except StorageError as error:
                logger().warning("cache.not_kept", why=str(error))


class _ForeignError(Exception):
    """The file, or a reply in it, was not written by us."""


@dataclass(slots=True)
class _Flight:
    """A key that is being looked up or fetched, and the number of callers who want it."""

    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    wanted_by: int = 0


@dataclass(slots=True)
class _Batch:
    """Keys to look up in one thread call, and the result."""

    keys: list[bytes] = field(default_factory=list)
    found: dict[bytes, ChatReply] = field(default_factory=dict)
    error: InputError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


def _make(path: Path) -> None:
    """Create the file atomically: processes that start together must not see a half-made one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        draft = Path(folder) / path.name
        with closing(sqlite3.connect(draft)) as database:
            database.executescript(_SCHEMA)
        with suppress(FileExistsError):  # another process was faster
            os.link(draft, path)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
    database.execute("PRAGMA synchronous=NORMAL")
    return database


def _check(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise _ForeignError("it is another kind of file")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise _ForeignError(f"it has schema {version}, and this version of flowevolve wants {SCHEMA_VERSION}")
    database.execute("SELECT key, reply FROM replies LIMIT 1").fetchone()


def _write(database: sqlite3.Connection, rows: Sequence[tuple[bytes, str]]) -> None:
    database.executemany(_KEEP, rows)


def _encode(reply: ChatReply) -> str:
    usage = reply.usage
    tokens: list[JSON] = [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens]
    kept: list[JSON] = [reply.text, tokens, reply.finish_reason, reply.model]
    if reply.logprobs is not None or reply.thinking:
        kept.append(reply.logprobs)
    if reply.thinking:
        kept.append(reply.thinking)
    return json.dumps(kept, separators=(",", ":"))


def _decode(text: str) -> ChatReply:
    try:
        kept: JSON = json.loads(text)
        match kept:
            case [str(reply_text), [int(prompt), int(completion), int(cached)], str(finish_reason), str(model), *more]:
                logprobs, thinking = [*more, None, None][:2]
                return ChatReply(
                    reply_text,
                    Usage(prompt, completion, cached),
                    finish_reason,
                    model,
                    cached=True,
                    dollars=0.0,
                    logprobs=logprobs,
                    thinking=thinking if isinstance(thinking, str) else "",
                )
    except (ValueError, TypeError):
        pass
    raise _ForeignError("a reply in it is damaged")
