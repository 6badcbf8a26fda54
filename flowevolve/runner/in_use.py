"""What plug-ins hold open during a run: a task or an algorithm that is a context manager, and backends.

Whatever their code raises when it opens or closes something is told in one line that names the plug-in, and it never
hides the error that ended the run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from flowevolve._util.errors import EngineError, FlowevolveError, InputError, described
from flowevolve._util.logger import logger
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.task import Task


@asynccontextmanager
async def in_use(part: Task | Algorithm) -> AsyncGenerator[None]:
    """A context in which a task or an algorithm holds what it needs during a run, such as a sandbox, if it is a context
    manager.

    Raises:
        InputError: if it can't be entered.
        EngineError: if it can't be left, unless the block has failed.
    """
    if not isinstance(part, AbstractAsyncContextManager):
        yield
        return
    entered: AbstractAsyncContextManager[object] = part
    what = f"{'algorithm' if isinstance(part, Algorithm) else 'task'} {part.name!r}"
    try:
        await entered.__aenter__()
    except FlowevolveError:
        raise
    except Exception as error:
        raise InputError(f"{what} can't be used: its __aenter__ raised {described(error)}") from error

    async def leave(failure: BaseException | None) -> None:
        kind, trace = (None, None) if failure is None else (type(failure), failure.__traceback__)
        await entered.__aexit__(kind, failure, trace)

    async with _left(what, leave):
        yield


def closing(what: str, aclose: Callable[[], Awaitable[None]]) -> AbstractAsyncContextManager[None]:
    """A context at whose end ``aclose`` is called.

    Raises:
        EngineError: if that fails, unless the block has failed.
    """
    return _left(what, lambda failure: aclose())


@asynccontextmanager
async def _left(what: str, leave: Callable[[BaseException | None], Awaitable[None]]) -> AsyncGenerator[None]:
    try:
        yield
    except BaseException as failure:
        try:
            await leave(failure)
        except Exception as error:  # noqa: BLE001 - whatever it is, the failure matters more
            if error is not failure:
                logger().warning("plugin.not_closed", plugin=what, why=described(error))
        raise
    try:
        await leave(None)
    except FlowevolveError:
        raise
    except Exception as error:
        raise EngineError(f"{what} could not be closed: {described(error)}") from error
