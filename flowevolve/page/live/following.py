"""What the live page follows: runs in directories of this machine, and runs that another live page shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol, get_origin, get_type_hints
from urllib.parse import parse_qs, quote, urlsplit

import aiohttp
import anyio

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.page.blame.blame import blame
from flowevolve.page.reading.source import RunSource, distinct, run_name
from flowevolve.page.tables.columns import in_object
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row

ANSWER_SECONDS = 60.0
"""The time limit of an answer of another page."""


class Follower(Protocol):
    """A run that is followed."""

    async def read(self) -> Sequence[Row]:
        """The rows that have changed since the last time.

        Raises:
            InputError: if it can't be read now; nothing is lost if it can be later.
        """

    async def call(self, number: int) -> JSON:
        """The texts of a call: its ``messages``, ``thinking`` and ``reply``; None if there is no such call.

        Raises:
            InputError: if it can't be read.
        """

    async def blame(self, tables: Tables, candidate: str) -> JSON:
        """Where the sentences of a candidate's texts came from: rows of the table blame as objects. ``tables`` are
        the rows of the run as they are now, which nobody changes meanwhile.

        Raises:
            InputError: if the journal can't be read.
        """


def is_address(place: str) -> bool:
    """Whether a place is that of a live page, and not a directory."""
    return place.startswith(("http://", "https://"))


@asynccontextmanager
async def follow(places: Sequence[str]) -> AsyncGenerator[Mapping[str, Follower]]:
    """The runs in these places, by names that are theirs alone: run directories, and addresses of live pages.

    Raises:
        InputError: if there is no run in a directory or it can't be read, or a page can't be reached.
    """
    async with AsyncExitStack() as stack:
        named: list[tuple[str, Path | _Page]] = []
        for place in places:
            if is_address(place):
                page = _Page(await stack.enter_async_context(_client(place)), place)
                named += [(name, page) for name in await page.runs()]
            else:
                named.append((run_name(Path(place)), Path(place)))
        followers: dict[str, Follower] = {}
        for name, (own, where) in zip(distinct([own for own, _ in named]), named, strict=True):
            if isinstance(where, Path):
                followers[name] = _LocalRun(stack.enter_context(RunSource(where, name)))
            else:
                followers[name] = _RemoteRun(where, own)
        yield followers


class _LocalRun:
    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._lock = anyio.Lock()
        self._unread: list[Row] = []
        """What was read before reading failed."""

    async def read(self) -> Sequence[Row]:
        async with self._lock:
            await in_thread(lambda: self._unread.extend(self._source.changes()))
            rows, self._unread = self._unread, []
            return rows

    async def call(self, number: int) -> JSON:
        async with self._lock:
            call = await in_thread(lambda: self._source.recorded.call(number))
        if call is None:
            return None
        messages: JSON = None
        if call.messages is not None:
            messages = [{"role": each.role, "content": each.content} for each in call.messages]
        return {"messages": messages, "thinking": call.thinking, "reply": call.reply}

    async def blame(self, tables: Tables, candidate: str) -> JSON:
        async with self._lock:
            return await in_thread(lambda: [in_object(row) for row in blame(tables, [candidate], self._source.reply)])


class _RemoteRun:
    def __init__(self, page: _Page, name: str) -> None:
        self._page = page
        self._path = f"api/runs/{quote(name, safe='')}"
        self._version = ""

    async def read(self) -> Sequence[Row]:
        match await self._page.ask(f"{self._path}/changes?after={self._version}"):
            case {"version": str(version), "tables": dict(tables)}:
                try:
                    read = [read_row(table, values) for table, rows in tables.items() for values in _listed(rows)]
                except (KeyError, TypeError):
                    pass
                else:
                    self._version = version
                    return read
        raise InputError(f"{self._page.shown}: is the page of another version of flowevolve")

    async def call(self, number: int) -> JSON:
        return await self._page.ask(f"{self._path}/calls/{number}")

    async def blame(self, tables: Tables, candidate: str) -> JSON:
        return await self._page.ask(f"{self._path}/blame/{quote(candidate, safe='')}") or []


class _Page:
    """Another live page."""

    def __init__(self, client: aiohttp.ClientSession, address: str) -> None:
        self._client = client
        parts = urlsplit(address)
        self.shown = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/") + "/"
        """Its address without its token."""

    async def runs(self) -> Sequence[str]:
        """Raises: InputError if it can't be reached, or is none."""
        match await self.ask("api/runs"):
            case {"runs": [*names]}:
                return [str(name) for name in names]
        raise InputError(f"{self.shown}: is no live page of flowevolve")

    async def ask(self, path: str) -> JSON:
        """What it answers; None if there is no such thing.

        Raises:
            InputError: if it can't be reached, refuses, or what it answers is no JSON.
        """
        try:
            async with self._client.get(self.shown + path) as response:
                if response.status == 404:
                    return None
                if response.status != 200:
                    raise InputError(f"{self.shown}: refuses ({response.status}): {(await response.text()).strip()}")
                answer: JSON = await response.json()
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise InputError(f"{self.shown}: can't be reached: {str(error) or 'no answer'}") from None


def read_row(table: str, values: JSON) -> Row:
    """The row that `flowevolve.page.tables.columns.in_rows` gave these values of.

    Raises:
        KeyError, TypeError: if there is no such table, or it has other columns.
    """
    lists = _LISTS[table]
    return TABLES[table](*(tuple(_listed(value)) if at in lists else value for at, value in enumerate(_listed(values))))


def _listed(value: JSON) -> list[JSON]:
    """Raises: TypeError if it is no list."""
    if not isinstance(value, list):
        raise TypeError
    return value


def _client(address: str) -> aiohttp.ClientSession:
    token = parse_qs(urlsplit(address).query).get("token")
    headers = {} if token is None else {"Authorization": f"Bearer {token[0]}"}
    return aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(ANSWER_SECONDS))


def _lists(table: type[Row]) -> frozenset[int]:
    """The places of the columns that hold several values."""
    hints = get_type_hints(table)
    return frozenset(place for place, name in enumerate(table.columns()) if get_origin(hints[name]) is tuple)


_LISTS = {name: _lists(table) for name, table in TABLES.items()}
