"""Serves a model with vLLM until a ``with`` block ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread

from flowevolve._util.errors import InputError
from flowevolve._util.ray_environment import set_ray_environment
from flowevolve._util.tasks import Pulse, beside, run_all
from flowevolve.vllm.local import check_local, local_servers
from flowevolve.vllm.server import Replica, ServerChange, ServerListener, keep_alive
from flowevolve.vllm.settings import VLLMSettings


def ignore_event(change: ServerChange) -> None:
    """The default of ``on_event``."""


@asynccontextmanager
async def serve_vllm(
    model: str,
    settings: VLLMSettings | None = None,
    *,
    log: Path,
    on_event: ServerListener = ignore_event,
    unanswered: Pulse | None = None,
    api_key: str | None = None,
) -> AsyncGenerator[list[str]]:
    """Start ``settings.replicas`` servers, wait until all are healthy, and yield their base URLs.

    Requests must name ``model``, whatever ``settings.model`` loads, and send ``api_key``, if one is given. A server
    that dies is restarted at the same URL. On a Ray cluster it is restarted wherever there is room, and the event that
    says that it is healthy has both URLs. ``on_event`` is called whenever a server starts, becomes healthy, dies or is
    given up. Callers fire ``unanswered`` when a request got no answer: the health of every server is then checked, and
    one that hangs is restarted, too. All servers are stopped when the block ends, and when this process is gone, even
    if it was killed. The first one writes to ``log``, the others to files beside it (``vllm-1.log`` beside
    ``vllm.log``); servers on a cluster write to a temporary folder of their node.

    Raises:
        InputError: if vLLM is not installed, a port is taken or the log can't be written; if there is no such cluster,
            or it is too small.
        BackendUnreachableError: if a server ends before it is healthy, or takes too long to become so.
    """
    settings = VLLMSettings() if settings is None else settings
    async with _replicas(model, settings, log, on_event, unanswered or Pulse(), api_key) as replicas:
        try:
            await run_all([replica.start for replica in replicas])
            async with beside() as tasks:
                for replica in replicas:
                    tasks.start_soon(keep_alive, replica, settings.restarts, on_event)
                yield [replica.url for replica in replicas]
        finally:
            with anyio.CancelScope(shield=True):
                await run_all([replica.stop for replica in replicas])


async def check_vllm(settings: VLLMSettings) -> None:
    """Check that servers could be started, without starting one.

    Raises:
        InputError: if vLLM is not installed or a port is taken; if there is no such cluster, or it is too small.
    """
    if settings.on == "here":
        await anyio.to_thread.run_sync(check_local, settings)
        return
    _prepare_ray()
    from flowevolve.vllm.ray import cluster  # noqa: PLC0415 - an extra

    async with cluster(settings):
        pass


def _replicas(
    model: str, settings: VLLMSettings, log: Path, on_event: ServerListener, unanswered: Pulse, api_key: str | None
) -> AbstractAsyncContextManager[Sequence[Replica]]:
    """The replicas, none of which is started."""
    if settings.on == "here":
        return local_servers(model, settings, log=log, on_event=on_event, unanswered=unanswered, api_key=api_key)
    _prepare_ray()
    from flowevolve.vllm.ray import replicas_on_ray  # noqa: PLC0415 - an extra

    return replicas_on_ray(model, settings, on_event, unanswered, api_key)


def _prepare_ray() -> None:
    """Raises: InputError if it is not installed."""
    if find_spec("ray") is None:
        raise InputError("vllm.on: 'ray' needs Ray: pip install 'flowevolve[ray]'")
    set_ray_environment()
