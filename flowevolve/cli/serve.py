"""The command line's ``serve``: a vLLM with flags that suit evolution, kept alive until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError
from flowevolve._util.signals import ending_signals
from flowevolve._util.tasks import beside
from flowevolve.cli.terminal import print_plain

if TYPE_CHECKING:
    from flowevolve.vllm.server import ServerChange
    from flowevolve.vllm.settings import VLLMSettings


def serve_command(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="a folder, or a name at Hugging Face; also the name it is served under"),
    ],
    flags: Annotated[list[str] | None, typer.Argument(metavar="-- FLAGS", help="of vllm serve, after a --")] = None,
    executable: Annotated[
        str, typer.Option(metavar="PATH", help="the vllm command, or the environment it is in")
    ] = "vllm",
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="where it listens")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="of the first replica; 0: any free ones")] = 8000,
    replicas: Annotated[int, typer.Option(min=1, metavar="N", help="how many servers of the model")] = 1,
    devices: Annotated[
        list[str] | None, typer.Option(metavar="GPUS", help="CUDA_VISIBLE_DEVICES of a replica; once for each")
    ] = None,
    startup_seconds: Annotated[float, typer.Option(metavar="SECONDS", help="until it must be healthy")] = 600.0,
    restarts: Annotated[
        int,
        typer.Option(
            metavar="N", help="how often it is started again when it dies; counted anew after an hour of health"
        ),
    ] = 3,
    defaults: Annotated[bool, typer.Option(help="add the flags that suit evolution")] = True,
    log: Annotated[Path, typer.Option(metavar="FILE", help="what vLLM says goes here")] = Path("vllm.log"),
) -> None:
    """Serve a model with vLLM and keep it alive, until Ctrl-C. A run uses it with llm.backend "vllm" and its URL."""
    from flowevolve._util.registry import validated
    from flowevolve.vllm.settings import VLLMSettings

    given: dict[str, object] = {
        "executable": executable,
        "flags": tuple(flags or ()),
        "defaults": defaults,
        "host": host,
        "port": port,
        "replicas": replicas,
        "devices": tuple(devices or ()),
        "startup_seconds": startup_seconds,
        "restarts": restarts,
    }
    settings = validated(VLLMSettings, given, "vllm")
    clock.run(_serve, model, settings, log)


async def _serve(model: str, settings: VLLMSettings, log: Path) -> None:
    from flowevolve.vllm.serving import serve_vllm

    gone: list[ServerChange] = []
    all_gone = anyio.Event()

    def tell(change: ServerChange) -> None:
        print_plain(f"{change.url}: {change.detail}")
        if change.kind == "gave_up":
            gone.append(change)
        if len(gone) == settings.replicas:
            all_gone.set()

    async def until_signalled(scope: anyio.CancelScope) -> None:
        with ending_signals() as signals:
            async for _ in signals:
                scope.cancel()

    async with beside() as tasks:
        tasks.start_soon(until_signalled, tasks.cancel_scope)
        print_plain(f"starting vLLM for {model}; its log is {log}")
        async with serve_vllm(model, settings, log=log, on_event=tell) as urls:
            print_plain(f"{model} at {' and '.join(urls)}; Ctrl-C ends it")
            await all_gone.wait()
    if all_gone.is_set():
        raise BackendUnreachableError(f"{gone[-1].url}: {gone[-1].detail}")
