"""One way to serve a web application on an address, for all servers of this package."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncGenerator[str]:
    """Serve the application there until the block ends, and yield its URL, without a slash. Port 0 takes any free one.

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
    """Whether a request has a name of this machine, or that which is listened on.

    Where a server on loopback asks for that, no other site can have a browser ask it under a name of its own that leads
    here.
    """
    return (urlsplit(f"//{request.host}").hostname or "") in _LOCAL_NAMES | {host}
