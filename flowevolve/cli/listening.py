"""What the commands that serve something have in common."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from flowevolve._util.errors import InputError


@asynccontextmanager
async def listening(
    served: AbstractAsyncContextManager[str], command: str, host: str, port: int
) -> AsyncGenerator[str]:
    """Serve something for as long as the block lasts, and yield its address.

    Raises:
        InputError: if the address can't be listened on.
    """
    async with AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(served)
        except OSError as error:
            raise InputError(
                f"{command} can't listen on {host}:{port}: {error.strerror}. Choose another --port"
            ) from None
        yield address
