"""The command line's ``calibrate``: measure a server for two minutes, and write a profile of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError, InputError, reason_of
from flowevolve.cli.terminal import aligned, print_error, print_plain

if TYPE_CHECKING:
    from flowevolve.config.llm import LLMSettings
    from flowevolve.core.model import Transport
    from flowevolve.sim.calibration.calibrate import Calibration


def calibrate_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="the server's base URL: http://127.0.0.1:8000/v1")],
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="by default the only one that the server lists")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the profile goes")] = Path("server.toml"),
    most: Annotated[int, typer.Option(min=1, metavar="N", help="how many requests it gets at a time, at most")] = 128,
    seconds: Annotated[float, typer.Option(min=10, metavar="SECONDS", help="about how long it may take")] = 120.0,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="the variable that holds the server's key")
    ] = None,
) -> None:
    """Measure how fast a server is, and write a profile of it for plan, for sim and for sim.profile.

    It makes up to some 1,800 requests with short answers, and pays for them. Nothing else should use the server.
    """
    from flowevolve._util.registry import validated
    from flowevolve._util.secrets import missing_key
    from flowevolve.config.llm import LLMSettings
    from flowevolve.sim.calibration.report import as_lines, as_toml

    if out.suffix != ".toml" or not out.parent.is_dir():
        raise InputError(f"--out {out}: name a file that ends in .toml, in a folder that exists")
    given = {
        "backend": "openai",
        "transport": "aiohttp",
        "base_url": url,
        "concurrency": most,
        "api_key_env": api_key_env,
    }
    settings = validated(LLMSettings, given, "calibrate")
    missing = missing_key(url, api_key_env, None)
    if missing is not None:
        raise InputError(
            f"calibrate: the environment variable {missing}, which is to hold the server's key, is not set"
        )
    _check_writable(out)
    name, found = clock.run(_calibrate, settings, url, model, most, seconds, clock="real")
    day = datetime.now(UTC).date().isoformat()
    heading = f"How fast {name!r} at {url} was on {day}, as measured by flowevolve calibrate."
    profile = as_toml(found, heading)
    try:
        out.write_text(profile, encoding="utf-8")
    except OSError as error:
        print_plain(profile)
        raise InputError(
            f"{out} can't be written: {reason_of(error)}. The profile was printed to standard output instead"
        ) from error
    for line in aligned(as_lines(found)):
        print_plain(line)
    print_plain(f"written to {out}; what a run would take: flowevolve plan CONFIG --profiles {out}")


def _check_writable(out: Path) -> None:
    """Check that the file can be written, and leave it as it is. This comes first, as measurements cost money.

    Raises:
        InputError: if it can't.
    """
    from flowevolve.journal.files import writing

    there = out.exists()
    with writing(out):
        out.open("a", encoding="utf-8").close()
        if not there:
            out.unlink()


async def _calibrate(
    settings: LLMSettings, url: str, model: str | None, most: int, seconds: float
) -> tuple[str, Calibration]:
    """Measure the server, and return the model's name and the results."""
    from flowevolve.core.model import OverloadedError
    from flowevolve.runner.llm import make_transport
    from flowevolve.sim.calibration.calibrate import calibrate

    transport = make_transport(settings)
    try:
        name = model or await _only_model(transport, url)
        found: Calibration = await calibrate(
            transport,
            name,
            most=most,
            seconds=seconds,
            tell=lambda line: print_error(f"… {line}"),
        )
    except OverloadedError as error:
        raise BackendUnreachableError(f"calibrate: {url} refuses single requests: {error}") from error
    finally:
        await transport.aclose()
    return name, found


async def _only_model(transport: Transport, url: str) -> str:
    """The only model that a server lists.

    Raises:
        InputError: if it lists none or several.
        BackendRefusedError, BackendUnreachableError: if it does not answer.
    """
    from flowevolve.core.model import LLMError, RefusedError

    try:
        listed = await transport.models()
    except RefusedError as error:
        raise BackendRefusedError(f"calibrate: {error}") from error
    except LLMError as error:
        raise BackendUnreachableError(f"calibrate: {error}") from error
    if len(listed) != 1:
        raise InputError(
            f"calibrate: {url} lists {', '.join(listed) or 'no model'}; name the one to measure with --model"
        )
    return listed[0]
