"""The command line's ``sim``: the simulated server over HTTP, until Ctrl-C."""

from __future__ import annotations

from typing import Annotated

import typer

from flowevolve._util import clock
from flowevolve._util.signals import until_ended
from flowevolve.cli.listening import listening
from flowevolve.cli.options import Port
from flowevolve.cli.terminal import print_plain


def sim_command(
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="how fast the server is: a profile (flowevolve list profiles) or a file with one"
        ),
    ] = "qwen3-8b-h100",
    world: Annotated[
        str, typer.Option(metavar="NAME", help="what its model knows: see flowevolve list worlds")
    ] = "rules",
    preset: Annotated[str, typer.Option(metavar="NAME", help="how hard the world is")] = "normal",
    model: Annotated[str, typer.Option(metavar="NAME", help="the name it serves the model under")] = "simulated",
    fault_rate: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="the share of requests that go wrong on purpose")
    ] = 0.0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="where it listens")] = "127.0.0.1",
    port: Port = 8000,
) -> None:
    """Serve a simulated LLM over an OpenAI-compatible API, until Ctrl-C."""
    from flowevolve.config.run import parse_config
    from flowevolve.runner.llm import make_roles, make_sim
    from flowevolve.sim.server import serve

    sections = {"profile": profile, "world": world, "preset": preset, "faults": {"rate": fault_rate}}
    settings = parse_config(
        {"sim": sections, "llm": {"backend": "sim", "model": model}, "budget": {"seconds": 1}}, "sim"
    )

    async def go() -> None:
        backend = make_sim(settings, make_roles(settings), "--")
        served = serve(backend, host=host, port=port)
        async with listening(served, "sim", host, port) as url:
            print_plain(f"simulated {model!r} (profile {profile}, world {world}) at {url}")
            await until_ended()

    clock.run(go, clock="real")
