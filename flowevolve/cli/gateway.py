"""The command line's ``gateway``: several runs share one server, or several replicas, until Ctrl-C."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError, InputError
from flowevolve._util.open_files import allow_open_files
from flowevolve._util.secrets import missing_key
from flowevolve._util.signals import until_ended
from flowevolve.cli.listening import listening
from flowevolve.cli.options import Port
from flowevolve.cli.terminal import print_plain

if TYPE_CHECKING:
    from flowevolve.config.llm import LLMSettings
    from flowevolve.core.event_body import EventBody
    from flowevolve.core.model import Transport

OPEN_FILES = 2**16
"""The most open files to ask the system for: each request of a run has a connection here, even while it waits."""


def gateway_command(
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...", help="the server's base URL, or those of several replicas")
    ],
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="how many requests the servers get at a time, all together")
    ] = 64,
    requests_per_minute: Annotated[
        float | None, typer.Option(metavar="N", help="of all runs together, for each model")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(metavar="N", help="of all runs together, for each model")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="FILE", help="answer what was asked before, by any run, from this file")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="the variable that holds the server's key; runs need none")
    ] = None,
    waiting_mb: Annotated[
        int,
        typer.Option(
            min=64, metavar="N", help="how many megabytes of requests may be open, all together; more get a 503"
        ),
    ] = 1024,
    timeout_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="how long the server may work on one request")
    ] = 600.0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="where it listens")] = "127.0.0.1",
    port: Port = 8100,
) -> None:
    """Share a server among several runs, until Ctrl-C. A run's share is counted in tokens that are processed for it.

    Runs use it with llm.base_url. How much each gets depends on its scheduler.share and scheduler.priority.
    """
    from flowevolve.config.run import parse_config

    given: dict[str, object] = {
        "backend": "openai",
        "transport": "aiohttp",
        "base_urls": tuple(urls),
        "concurrency": concurrency,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "cache": {"path": cache},
        "api_key_env": api_key_env,
        "timeout_seconds": timeout_seconds,
    }
    settings = parse_config({"llm": given, "budget": {"seconds": 1}}, "gateway").llm
    for url in urls:
        variable = missing_key(url, settings.api_key_env, None)
        if variable is not None:
            raise InputError(
                f"--api-key-env: the environment variable {variable}, which is to hold the key for {url}, is not set; "
                "set it"
            )
    allow_open_files(OPEN_FILES)
    clock.run(_share, settings, host, port, waiting_mb, clock="real")


async def _share(settings: LLMSettings, host: str, port: int, waiting_mb: int) -> None:
    from flowevolve.gateway.gateway import Gateway
    from flowevolve.gateway.server import serve
    from flowevolve.llm.client.cache import open_cache
    from flowevolve.runner.llm import make_transport

    def tell(event: EventBody) -> None:
        print_plain(f"{event.kind}: {', '.join(f'{name} {value}' for name, value in event.to_json().items())}")

    async with AsyncExitStack() as opened:
        path = settings.cache.path
        cache = None if path is None else await opened.enter_async_context(open_cache(path, "--cache"))
        transport = make_transport(settings, log=tell)
        opened.push_async_callback(transport.aclose)
        await _list_models(transport)
        gateway = Gateway(
            transport,
            settings.concurrency,
            cache=cache,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            log=tell,
        )
        served = serve(
            gateway,
            host=host,
            port=port,
            timeout_seconds=settings.timeout_seconds,
            most_bytes=waiting_mb * 2**20,
        )
        url = await opened.enter_async_context(listening(served, "gateway", host, port))
        print_plain(f"gateway to {' and '.join(settings.urls)} at {url}; Ctrl-C ends it")
        await until_ended()


async def _list_models(transport: Transport) -> None:
    """Print which models there are. Servers that do not answer may still be starting.

    Raises:
        BackendRefusedError: if they refuse us.
    """
    from flowevolve.core.model import NO_MODEL_LIST, LLMError, RefusedError

    try:
        print_plain(f"models: {', '.join(await transport.models())}")
    except RefusedError as error:
        if error.status not in NO_MODEL_LIST:
            raise BackendRefusedError(
                f"gateway: {error}. Check the URL, and the key that --api-key-env names"
            ) from error
        print_plain(
            "the server gives no list of models, so only the first requests will tell whether the URL is right: "
            f"{error}"
        )
    except LLMError as error:
        print_plain(f"the server does not answer yet, but requests will be sent to it all the same: {error}")
