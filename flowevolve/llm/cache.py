"""The response cache: replies on disk, found again by everything that determines them.

Only repeatable requests are cached: those with a sampling seed and those at temperature 0. Any other is meant to be
answered anew. The key is a digest of backend, model, messages, temperature, max_tokens, seed, stop and extra, so a hit
is what the same backend said to the same request; prompts and API keys are not stored. Several processes may share one
file (SQLite in WAL mode, on a local disk). It only grows: to empty it, remove it while no run uses it.
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

from flowevolve.clock import in_thread
from flowevolve.errors import InputError, StorageError
from flowevolve.llm.types import JSON, ChatReply, ChatRequest, Usage
from flowevolve.writer import Writer

SCHEMA_VERSION = 1
APPLICATION_ID = 0x666C6563
"""In the file's header: tells a response cache from any other SQLite file."""
BUSY_SECONDS = 60.0
"""How long a write waits for another process that is writing."""

_SCHEMA = f"""
PRAGMA journal_mode=WAL;
PRAGMA application_id={APPLICATION_ID};
PRAGMA user_version={SCHEMA_VERSION};
CREATE TABLE replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL);
"""
_FIND = "SELECT reply FROM replies WHERE key = ?"
_KEEP = "INSERT OR IGNORE INTO replies VALUES (?, ?)"


def reply_key(backend: str, request: ChatRequest) -> bytes | None:
    """What the reply of a backend to this request is kept under; None if the request is not repeatable."""
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
    """The cache in one file, for one event loop; `open_cache` makes and closes it.

    Raises:
        InputError: if the file is damaged, is something else, or can't be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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
        """What is kept under a key, if anything. One holder at a time: whoever else asks for the key waits meanwhile.

        So a call made and kept inside the ``async with`` is made once; if it fails or is cancelled, the next in line
        finds nothing and makes it.

        Raises:
            InputError: if the file turns out to be damaged.
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
        """Keep a reply; it is found from now on, and in other processes as soon as it is on disk. Never waits."""
        text = self._unwritten[key] = _encode(reply)
        self._writer.put((key, text))

    def close(self) -> None:
        """Write what is left.

        Raises:
            StorageError: if something could not be written.
        """
        self._writer.close()
        self._connections.close()
        failure = self._writer.failure
        if failure is not None:
            raise StorageError(
                f"{self._path}: not all replies could be kept for later runs: {failure}; "
                "free some space (nothing else of this run is affected)"
            ) from failure

    async def _find(self, key: bytes) -> ChatReply | None:
        """Look a key up, in one go with all others asked for during the look before: a thread's turn is dear."""
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
            # What leaves `_unwritten` is on disk already, so looking in this order misses nothing.
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
            f"{self._path}: can't be used as a response cache: {error}; "
            "name another file in llm.cache.path, or remove this one if nothing else needs it"
        )


@asynccontextmanager
async def open_cache(path: Path) -> AsyncGenerator[ResponseCache]:
    """The cache in this file, which is made if it is not there.

    Raises:
        InputError: if the file is damaged, is something else, or can't be made.
        StorageError: at the end, if something could not be written.
    """
    cache = await in_thread(ResponseCache, path)
    try:
        yield cache
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(cache.close)


class _ForeignError(Exception):
    """Not what we wrote."""


@dataclass(slots=True)
class _Flight:
    """An identical call under way, and how many want its reply."""

    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    wanted_by: int = 0


@dataclass(slots=True)
class _Batch:
    """Keys to look up in one go, and what came of it."""

    keys: list[bytes] = field(default_factory=list)
    found: dict[bytes, ChatReply] = field(default_factory=dict)
    error: InputError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


def _make(path: Path) -> None:
    """Make the file whole or not at all: processes that start together must not meet a half-made one."""
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


def _write(database: sqlite3.Connection, row: tuple[bytes, str]) -> None:
    database.execute(_KEEP, row)


def _encode(reply: ChatReply) -> str:
    usage = reply.usage
    tokens: list[JSON] = [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens]
    kept: list[JSON] = [reply.text, tokens, reply.finish_reason, reply.model]
    if reply.logprobs is not None:
        kept.append(reply.logprobs)
    return json.dumps(kept, separators=(",", ":"))


def _decode(text: str) -> ChatReply:
    try:
        kept: JSON = json.loads(text)
        match kept:
            case [str(said), [int(prompt), int(completion), int(cached)], str(finish_reason), str(model), *more]:
                usage = Usage(prompt, completion, cached)
                logprobs = more[0] if more else None
                return ChatReply(said, usage, finish_reason, model, cached=True, dollars=0.0, logprobs=logprobs)
    except (ValueError, TypeError):
        pass
    raise _ForeignError("a reply in it is damaged")
