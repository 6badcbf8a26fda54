"""The live page over HTTP: the page, the tables as they are, and what changes in them as server-sent events.

    GET /                                     the page
    GET /api/runs                             the names of the runs, the version that events go on from, by run why it
                                              can't be steered from here (null if it can), and the name to steer under
    GET /api/runs/NAME/tables                 all rows of a run, in columns
    GET /api/events?after=VERSION             rows that have changed after a version, and from then on as they change
    GET /api/runs/NAME/changes?after=VERSION  those of one run up to now; without a version all of them
    GET /api/runs/NAME/calls/ID               the texts of a call
    GET /api/runs/NAME/blame/ID               where the sentences of a candidate's texts came from
    POST /api/runs/NAME/acts                  have the run do something: flowevolve.page.live.posts

A version is a number after the server's own mark. A browser that was away asks with the last version that it had, and
gets every row that has changed since. If the server is another one by then, it tells the browser to begin anew.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
from aiohttp import web

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import beside
from flowevolve._util.web_server import listening
from flowevolve.page.assets import page
from flowevolve.page.live.access import HOW_TO_STEER, Access, add_headers
from flowevolve.page.live.following import follow
from flowevolve.page.live.live import Live, LiveRun, in_lists
from flowevolve.page.live.posts import MOST_BYTES, login_name, read_post
from flowevolve.page.live.run_pipe import RunPipe

LOOK_SECONDS = 1.0
"""The time between two looks at the journals."""
QUIET_SECONDS = 15.0
"""After this long without a change, a browser is sent an empty comment, so that the connection stays open."""

_MOST_DIGITS = 18
"""The most digits of a number that a browser gives: SQLite holds all such numbers as integers."""


@asynccontextmanager
async def serve_page(
    places: Sequence[str],
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    pipe: RunPipe | None = None,
) -> AsyncGenerator[str]:
    """Serve the page of the runs in these directories, or that live pages at these addresses show, and yield its own
    address. Port 0 takes any free port.

    ``token`` is required for reading. If it is None, everybody on this machine may read, and steering takes a new
    token, which the address ends with. ``pipe`` leads to the run, if the page is that of one run only.

    Raises:
        InputError: if there is no run in a directory or it can't be read, or a page can't be reached.
        OSError: if the address can't be listened on.
    """
    async with follow(places, pipe) as followers:
        live = Live(followers)
        await live.read()
        free = token is None
        if token is None and any(follower.only_shown is None for follower in followers.values()):
            token = secrets.token_urlsafe(16)
        access = Access(host, token, free=free)
        handlers = _Handlers(live, access)
        app = web.Application(middlewares=[access.check], client_max_size=MOST_BYTES)
        app.router.add_get("/", handlers.page)
        app.router.add_get("/api/runs", handlers.runs)
        app.router.add_get("/api/events", handlers.events)
        app.router.add_get("/api/runs/{run}/tables", handlers.tables)
        app.router.add_get("/api/runs/{run}/changes", handlers.changes)
        app.router.add_get("/api/runs/{run}/calls/{id}", handlers.call)
        app.router.add_get("/api/runs/{run}/blame/{candidate}", handlers.blame)
        app.router.add_post("/api/runs/{run}/acts", handlers.act)
        app.on_response_prepare.append(add_headers)
        async with beside() as tasks, listening(app, host, port) as address:
            tasks.start_soon(live.keep_reading, LOOK_SECONDS)
            yield f"{address}/{'' if token is None else f'?token={token}'}"
            await live.read()  # one last time, so that browsers get the end of the run
            handlers.end()


class _Handlers:
    def __init__(self, live: Live, access: Access) -> None:
        self._live = live
        self._access = access
        self._mark = secrets.token_hex(4)
        self._message: tuple[int, int, bytes] = (0, 0, b"")
        """The latest message of changes, after the versions that it leads from and to: browsers mostly ask for the
        same.
        """
        self._ended = False

    def end(self) -> None:
        """Let browsers that listen go, once they have received everything."""
        self._ended = True
        self._live.changed.fire()

    async def page(self, request: web.Request) -> web.Response:
        made = page(connect=True)
        headers = {"Content-Security-Policy": f"{made.policy}; frame-ancestors 'none'"}
        return web.Response(text=made.html, content_type="text/html", headers=headers)

    async def runs(self, request: web.Request) -> web.Response:
        only_shown = {name: run.follower.only_shown for name, run in self._live.runs.items()}
        if not self._access.knows_token(request):
            only_shown = {name: why or HOW_TO_STEER for name, why in only_shown.items()}
        about = {"version": self._version(), "only_shown": only_shown, "by": login_name()}
        return web.json_response({"runs": list(self._live.runs), **about})

    async def tables(self, request: web.Request) -> web.Response:
        snapshot = await self._run(request).snapshot()
        answer = await in_thread(_json, snapshot)
        answer.enable_compression()
        return answer

    async def changes(self, request: web.Request) -> web.Response:
        run, known = self._run(request), self._known(request)
        version, rows = self._version(), run.since(known or 0)
        answer = await in_thread(lambda: _json({"version": version, "tables": in_lists(rows)}))
        answer.enable_compression()
        return answer

    async def call(self, request: web.Request) -> web.Response:
        run, number = self._run(request), _number(request.match_info["id"])
        try:
            texts = None if number is None else await run.follower.call(number)
        except InputError as error:
            raise web.HTTPBadGateway(text=str(error)) from None
        if texts is None:
            raise web.HTTPNotFound(text="There is no such call.")
        return _json(texts)

    async def blame(self, request: web.Request) -> web.Response:
        run = self._run(request)
        try:
            return _json(await run.follower.blame(run.tables.copy(), request.match_info["candidate"]))
        except InputError as error:
            raise web.HTTPBadGateway(text=str(error)) from None

    async def act(self, request: web.Request) -> web.Response:
        run, posted = self._run(request), await read_post(request)
        try:
            refused = await run.follower.act(posted.act, posted.by)
        except InputError as error:
            raise web.HTTPBadGateway(text=str(error)) from None
        return web.json_response({"refused": refused}, status=200 if refused is None else 409)

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        sent = self._known(request)
        if sent is None:
            await response.write(b"event: anew\ndata: {}\n\n")
            return response
        while True:
            if (upto := self._live.version) > sent:
                await response.write(self._message_of(sent, upto))
                sent = upto
            elif self._ended:
                await response.write(b"event: end\ndata: {}\n\n")
                return response
            else:
                with anyio.move_on_after(QUIET_SECONDS) as quiet:
                    await self._live.changed.wait()
                if quiet.cancelled_caught:
                    await response.write(b":\n\n")

    def _version(self) -> str:
        return f"{self._mark}-{self._live.version}"

    def _known(self, request: web.Request) -> int | None:
        """The version that a browser has; None if it has none of this server."""
        mark, _, version = (request.headers.get("Last-Event-ID") or request.query.get("after", "")).partition("-")
        return _number(version) if mark == self._mark else None

    def _message_of(self, after: int, upto: int) -> bytes:
        if self._message[:2] != (after, upto):
            data = json.dumps(self._live.since(after), separators=(",", ":"))
            self._message = (after, upto, f"id: {self._version()}\ndata: {data}\n\n".encode())
        return self._message[2]

    def _run(self, request: web.Request) -> LiveRun:
        run = self._live.runs.get(request.match_info["run"])
        if run is None:
            raise web.HTTPNotFound(text="There is no such run.")
        return run


def _number(text: str) -> int | None:
    """The number that a browser gives for a call or a version; None if no call or version can have it."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _json(data: JSON) -> web.Response:
    return web.Response(body=json.dumps(data, separators=(",", ":")).encode(), content_type="application/json")
