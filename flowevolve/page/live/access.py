"""Who may see a live page: everybody on this machine, or from elsewhere those who have its token; and no other site.

Whoever steers a run must have the token in either case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from urllib.parse import urlsplit

from aiohttp import web

from flowevolve._util.web_server import is_asked_locally

COOKIE = "flowevolve_token"
"""The beginning of the cookie's name; the port follows, as all ports of a machine share cookies."""
HOW_TO_STEER = "Open the page at the address that was printed, which ends with ?token= and the token."
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Access:
    """Checks each request. ``token`` is None if the page is on loopback and can't steer anything.

    With ``free``, everybody on this machine may read, and only requests that change something need the token.
    """

    def __init__(self, host: str, token: str | None, *, free: bool) -> None:
        self._host = host
        self._token = token
        self._free = free

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer the request if it is allowed; a middleware of aiohttp.

        A page that everybody may read must be requested by a local name of this machine. So no other site can make a
        browser request it by a name of the site's own that leads here. If reading takes a token, any name will do.
        """
        if self._free and not is_asked_locally(request, self._host):
            raise web.HTTPForbidden(text="This page is for this machine; ask for it as http://127.0.0.1 with its port.")
        reads = request.method in ("GET", "HEAD")
        if not (_from_here(request) if reads else _from_this_page(request)):
            raise web.HTTPForbidden(text="This page answers no other site.")
        if not self.knows_token(request):
            self._turn_into_cookie(request)
            if not reads:
                raise web.HTTPForbidden(text=f"Steering takes the page's token. {HOW_TO_STEER}")
            if not self._free:
                raise web.HTTPForbidden(
                    text="The address must end with ?token= and the token that flowevolve watch printed."
                )
        return await handler(request)

    def knows_token(self, request: web.Request) -> bool:
        """Whether the request has the token: in a cookie or, from a program, in a header."""
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        given = bearer if kind == "Bearer" else request.cookies.get(_cookie(request), "")
        return self._is_token(given)

    def _turn_into_cookie(self, request: web.Request) -> None:
        """Turn a token in the address into a cookie, which is in no history and no log."""
        if request.path == "/" and self._is_token(request.query.get("token", "")):
            answer = web.HTTPSeeOther("/")
            answer.set_cookie(_cookie(request), str(self._token), httponly=True, samesite="Strict")
            raise answer

    def _is_token(self, given: str) -> bool:
        return self._token is not None and compare_digest(
            given.encode("utf-8", "surrogateescape"), self._token.encode()
        )


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every answer has; a signal handler of aiohttp."""
    response.headers.update(_HEADERS)


def _cookie(request: web.Request) -> str:
    """The cookie's name, by the port that the browser asked: one machine may have several pages."""
    port = request.host.rpartition(":")[2]
    return f"{COOKIE}_{port if port.isdecimal() else 80}"


def _from_here(request: web.Request) -> bool:
    """Whether no other site has made the browser ask. Following a link to the page itself is fine."""
    if not _same_origin(request):
        return False
    site, mode = request.headers.get("Sec-Fetch-Site", "none"), request.headers.get("Sec-Fetch-Mode")
    return site in ("none", "same-origin") or (mode == "navigate" and request.path == "/")


def _from_this_page(request: web.Request) -> bool:
    """Whether a request that changes something comes from the page itself or from a program, and no other site."""
    return _same_origin(request) and request.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"


def _same_origin(request: web.Request) -> bool:
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host
