"""Serving a web application on an address, in the same way for all servers of this package."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncGenerator[str]:
    """Serve the application until the block ends, and yield its URL, without a final slash. Port 0 takes any free one.

    A handler is cancelled when its client has gone away.

    Raises:
        OSError: if the address can't be listened on.
    """
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound_host, bound_port, *_ = runner.addresses[0]
        yield f"http://{f'[{bound_host}]' if ':' in bound_host else bound_host}:{bound_port}"
    finally:
        await runner.cleanup()


def is_asked_locally(request: web.Request, host: str) -> bool:
    """Whether a request is addressed to a local name of this machine, or to the host name that is listened on.

    If a server on loopback requires this, no other site can have a browser send it requests under a host name of the
    site's own that resolves to this machine (DNS rebinding).
    """
    return (urlsplit(f"//{request.host}").hostname or "") in _LOCAL_NAMES | {host}
