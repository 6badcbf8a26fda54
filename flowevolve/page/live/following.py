"""What the live page follows: runs in directories of this machine, and runs that another live page shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol, get_origin, get_type_hints
from urllib.parse import parse_qs, quote, urlsplit

import aiohttp
import anyio

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.acts import Act
from flowevolve.page.blame.blame import blame
from flowevolve.page.live.run_pipe import RunPipe
from flowevolve.page.reading.source import RunSource, distinct, run_name
from flowevolve.page.tables.columns import in_object
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row

ANSWER_SECONDS = 60.0
"""The time limit for an answer from another page."""
ONLY_SHOWN = "This page only shows the run. To steer a run, start it with --watch, and open the address that it prints."


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
        """Where the sentences of a candidate's texts came from: rows of the table blame as objects. ``tables`` are the
        rows of the run as they are now, and must not change meanwhile.

        Raises:
            InputError: if the journal can't be read.
        """

    @property
    def only_shown(self) -> str | None:
        """Why the run can't be steered from here, in words; None if it can."""

    async def act(self, act: Act, by: str) -> str | None:
        """Have the run do an act; returns why it refuses, or None if it was done.

        Raises:
            InputError: if the run can't be reached, or gives no answer.
        """


def is_address(place: str) -> bool:
    """Whether a place is the address of a live page, and not a directory."""
    return place.startswith(("http://", "https://"))


@asynccontextmanager
async def follow(places: Sequence[str], pipe: RunPipe | None = None) -> AsyncGenerator[Mapping[str, Follower]]:
    """The runs in these places, by unique names. A place is a run directory or the address of a live page.

    ``pipe`` leads to the run in the directory, if this process serves the page of that run only.

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
                followers[name] = _LocalRun(stack.enter_context(RunSource(where, name)), pipe)
            else:
                followers[name] = _RemoteRun(where, own)
        yield followers


class _LocalRun:
    def __init__(self, source: RunSource, pipe: RunPipe | None) -> None:
        self._source = source
        self._pipe = pipe
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

    @property
    def only_shown(self) -> str | None:
        return ONLY_SHOWN if self._pipe is None else None

    async def act(self, act: Act, by: str) -> str | None:
        return ONLY_SHOWN if self._pipe is None else await self._pipe.act(act, by)


class _RemoteRun:
    def __init__(self, page: _Page, name: str) -> None:
        self._page = page
        self.only_shown = page.only_shown.get(name, ONLY_SHOWN)
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
        raise InputError(f"{self._page.shown} is the page of another version of flowevolve; watch it with that version")

    async def call(self, number: int) -> JSON:
        return await self._page.ask(f"{self._path}/calls/{number}")

    async def blame(self, tables: Tables, candidate: str) -> JSON:
        return await self._page.ask(f"{self._path}/blame/{quote(candidate, safe='')}") or []

    async def act(self, act: Act, by: str) -> str | None:
        match await self._page.tell(f"{self._path}/acts", {"act": act.to_json(), "by": by}):
            case {"refused": (str() | None) as refused}:
                return refused
        raise InputError(f"{self._page.shown} is the page of another version of flowevolve; watch it with that version")


class _Page:
    """Another live page."""

    def __init__(self, client: aiohttp.ClientSession, address: str) -> None:
        self._client = client
        self.only_shown: dict[str, str | None] = {}
        """By run, why it can't be steered from here; None if it can. A page that does not report this names none."""
        parts = urlsplit(address)
        self.shown = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/") + "/"
        """Its address without its token."""

    async def runs(self) -> Sequence[str]:
        """Raises: InputError if it can't be reached, or is no live page."""
        answer = await self.ask("api/runs")
        match answer:
            case {"only_shown": dict(known)}:
                self.only_shown = {name: None if why is None else str(why) for name, why in known.items()}
        match answer:
            case {"runs": [*names]}:
                return [str(name) for name in names]
        raise InputError(f"{self.shown} is not a live page of flowevolve")

    async def ask(self, path: str) -> JSON:
        """The page's answer to a request; None if what it asks for does not exist.

        Raises:
            InputError: if the page can't be reached or refuses, or its answer is no JSON.
        """
        return await self._exchange("GET", path, None, (200,))

    async def tell(self, path: str, data: JSON) -> JSON:
        """The page's answer to what is posted; None if what that is for does not exist.

        Raises:
            InputError: as `ask`.
        """
        return await self._exchange("POST", path, data, (200, 409))

    async def _exchange(self, method: str, path: str, data: JSON, fine: Collection[int]) -> JSON:
        try:
            async with self._client.request(method, self.shown + path, json=data) as response:
                if response.status == 404:
                    return None
                if response.status not in fine:
                    raise InputError(
                        f"{self.shown} refuses the request ({response.status}): {(await response.text()).strip()}"
                    )
                answer: JSON = await response.json()
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise InputError(f"{self.shown} can't be reached: {str(error) or 'no answer'}") from None


def read_row(table: str, values: JSON) -> Row:
    """The row that `flowevolve.page.tables.columns.in_rows` has turned into these values.

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
