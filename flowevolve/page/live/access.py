"""Who may see a live page: everybody on this machine, or from elsewhere those who have its token; and no other site."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from ipaddress import ip_address
from typing import NoReturn
from urllib.parse import urlsplit

from aiohttp import web

COOKIE = "flowevolve_token"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """What is asked of each request. ``token`` is None where the page is on loopback and has none."""

    def __init__(self, host: str, token: str | None) -> None:
        self._names = _LOCAL_NAMES | {host}
        self._token = token

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer the request if it may be answered; a middleware of aiohttp.

        A page on loopback is asked for by a name of this machine: so no other site can have a browser ask for it under
        a name of its own that leads here. With a token any name will do.
        """
        if self._token is None and _host_name(request.host) not in self._names:
            raise web.HTTPForbidden(text="This page is for this machine; ask for it as http://127.0.0.1 with its port.")
        if not _from_here(request):
            raise web.HTTPForbidden(text="This page answers no other site.")
        if self._token is not None and not self._shown(request):
            self._let_in(request)
        return await handler(request)

    def _shown(self, request: web.Request) -> bool:
        """Whether the request has the token: in a cookie or, of a program, in its header."""
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        given = bearer if kind == "Bearer" else request.cookies.get(COOKIE, "")
        return self._is_token(given)

    def _let_in(self, request: web.Request) -> NoReturn:
        """Turn a token in the address into a cookie, which is in no history and no log."""
        if request.path != "/" or not self._is_token(request.query.get("token", "")):
            raise web.HTTPForbidden(
                text="The address must end with ?token= and the token that flowevolve watch printed."
            )
        answer = web.HTTPSeeOther("/")
        answer.set_cookie(COOKIE, str(self._token), httponly=True, samesite="Strict")
        raise answer

    def _is_token(self, given: str) -> bool:
        return self._token is not None and compare_digest(given.encode(), self._token.encode())


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """What every answer says to the browser; a signal handler of aiohttp."""
    response.headers.update(_HEADERS)


def _host_name(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _from_here(request: web.Request) -> bool:
    """Whether no other site has made the browser ask. Following a link to the page itself is fine."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        return False
    site, mode = request.headers.get("Sec-Fetch-Site", "none"), request.headers.get("Sec-Fetch-Mode")
    return site in ("none", "same-origin") or (mode == "navigate" and request.path == "/")
