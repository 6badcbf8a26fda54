"""What the command line's ``run``, ``resume``, ``replay``, ``check`` and ``sim`` do."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path

import anyio
import typer
from prometheus_client import start_http_server

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.cli.terminal import plain_console
from flowevolve.config.backends import SHIPPED_BACKENDS
from flowevolve.config.roles import model_names
from flowevolve.config.run import Config, load_config, parse_config
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.journal.files import writing
from flowevolve.journal.reading import JOURNAL, Recorded
from flowevolve.runner.assemble import endpoints, make_roles, make_sim, problem_notes
from flowevolve.runner.clients import SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.replay import Replayed, replay
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import Watchers, check, run
from flowevolve.runner.vllm_server import starts_vllm
from flowevolve.telemetry.comparison import compare
from flowevolve.telemetry.logs import configure_logs, log_event
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import Lines, LiveTable, Progress
from flowevolve.telemetry.summary import summarize
from flowevolve.telemetry.traffic_metrics import TrafficMetrics
from flowevolve.vllm.server import ServerChange

console = plain_console()


def run_config(
    config: Path,
    overrides: Sequence[str],
    start: str | None,
    out: Path | None,
    events: bool,
    metrics_port: int | None,
    verbose: bool,
) -> None:
    """Run a configuration; ``start`` is another run's directory, with ``@VERSION`` if not its last."""
    configure_logs(logging.INFO if verbose else logging.WARNING)
    settings = _load(config, [*overrides, *_start(start)])
    with _fresh_directory(config) if out is None else nullcontext(out) as directory:
        console.print(_title(settings), highlight=False)

        async def go(watchers: Watchers, side_task: SideTask) -> Result:
            return await run(settings, out=directory, events=events, watchers=watchers, side_task=side_task)

        _show(go, settings.clock, directory, metrics_port)


def resume_run(directory: Path, overrides: Sequence[str], metrics_port: int | None, verbose: bool) -> None:
    """Go on with the run in a directory."""
    configure_logs(logging.INFO if verbose else logging.WARNING)
    with Recorded(directory) as recorded:
        settings = parse_config(recorded.config, f"{directory}/config.toml")
    console.print(f"going on with {directory}: {_title(settings)}", highlight=False, soft_wrap=True)

    async def go(watchers: Watchers, side_task: SideTask) -> Result:
        return await resume(directory, changes=overrides, watchers=watchers, side_task=side_task)

    _show(go, settings.clock, directory, metrics_port)


def replay_run(directory: Path, overrides: Sequence[str], slots: int | None, out: Path | None, verbose: bool) -> None:
    """Replay the run in a directory, and compare the two."""
    configure_logs(logging.INFO if verbose else logging.WARNING)

    async def go(side_task: SideTask) -> Replayed:
        watchers = Watchers(events=(log_event,))
        return await replay(directory, changes=overrides, slots=slots, out=out, watchers=watchers, side_task=side_task)

    replayed = clock.run(until_interrupted, go, clock="virtual")
    if replayed is None:
        raise typer.Exit(INTERRUPTED.exit_code)
    scores = not replayed.replies.stand_ins
    console.print(compare(replayed.recorded, replayed.replayed, scores=scores, notes=replayed.notes))
    if out is not None:
        console.print(f"written to {out}", highlight=False, soft_wrap=True)
    raise typer.Exit(replayed.result.report.stop_reason.exit_code)


def check_config(config: Path, overrides: Sequence[str]) -> None:
    """Validate a configuration and reach its backends."""
    configure_logs()
    settings = _load(config, overrides)

    async def go() -> None:
        task = await check(settings)
        data = task.data
        console.print(f"{task.name}: {len(data.train)} train, {len(data.val)} val, {len(data.test)} test examples")

    clock.run(go, clock=settings.clock)
    console.print(f"{config}: fine; {_backend(settings)}", highlight=False)


def serve_simulation(
    profile: str, world: str, preset: str, model: str, fault_rate: float, host: str, port: int
) -> None:
    """Serve a simulated LLM until Ctrl-C."""
    from flowevolve.sim.server import serve  # noqa: PLC0415 - aiohttp is slow to load

    sections = {"profile": profile, "world": world, "preset": preset, "faults": {"rate": fault_rate}}
    settings = parse_config({"sim": sections, "llm": {"model": model}, "budget": {"seconds": 1}}, "sim")

    async def go() -> None:
        backend = make_sim(settings, make_roles(settings))
        async with serve(backend, host=host, port=port) as url:
            console.print(
                f"simulated {model!r} (profile {profile}, world {world}) at {url}", highlight=False, soft_wrap=True
            )
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    return

    try:
        clock.run(go, clock="real")
    except OSError as error:
        raise InputError(f"sim: can't listen on {host}:{port}: {error.strerror}; choose another --port") from None


def _load(config: Path, overrides: Sequence[str]) -> Config:
    """A config file, or a problem folder: what is to be known of the problem is printed."""
    if config.is_dir():
        from flowevolve.runner.folder import load_folder  # noqa: PLC0415 - few runs need it

        found = load_folder(config, overrides)
        settings, notes = found.config, found.notes
    else:
        settings = load_config(config, overrides)
        notes = tuple(problem_notes(settings))
    for note in notes:
        _plain(f"note: {note}")
    return settings


def _start(named: str | None) -> list[str]:
    """``DIR[@VERSION]`` as overrides."""
    if named is None:
        return []
    directory, at, version = named.rpartition("@")
    if not at or not version.isdigit():
        directory, version = named, ""
    return [f"start.run={json.dumps(directory)}", *([f"start.version={version}"] if version else [])]


def _show(
    go: Callable[[Watchers, SideTask], Awaitable[Result]],
    clock_name: clock.Clock,
    directory: Path,
    metrics_port: int | None,
) -> None:
    """Carry out a run, showing how it goes and what it came to."""
    progress: Progress = LiveTable(console, "") if console.is_terminal else Lines(_plain)

    metrics, traffic = Metrics(), TrafficMetrics()
    metrics.registry.register(traffic)
    if metrics_port is not None:
        _serve_metrics(metrics, metrics_port)

    watchers = Watchers((progress.event, log_event, metrics.event), (metrics.call,), (_tell_server,), (traffic.watch,))
    with progress:
        result = clock.run(until_interrupted, partial(go, watchers), clock=clock_name)
    if result is None:
        known = (directory / JOURNAL).is_file()
        _plain(f"interrupted; to go on: flowevolve resume {directory}" if known else "interrupted before the run began")
        raise typer.Exit(INTERRUPTED.exit_code)
    console.print(summarize(result.to_json()))
    console.print(f"written to {directory}", highlight=False, soft_wrap=True)
    if result.report.stop_reason.exit_code:
        _plain(f"to go on: flowevolve resume {directory}")
        raise typer.Exit(result.report.stop_reason.exit_code)


def _serve_metrics(metrics: Metrics, port: int) -> None:
    try:
        start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    except OSError as error:
        raise InputError(f"--metrics-port {port}: can't listen there: {error.strerror}; choose another") from None


@contextmanager
def _fresh_directory(config: Path) -> Iterator[Path]:
    """A new directory under runs/, which no run that begins in the same second gets; it goes if it stays empty."""
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{config.resolve().stem}-{stamp}"
    with writing(first):
        first.parent.mkdir(exist_ok=True)
        for directory in chain([first], (first.with_name(f"{first.name}-{number}") for number in count(2))):
            with suppress(FileExistsError):
                directory.mkdir()
                break
    try:
        yield directory
    finally:
        with suppress(OSError):
            directory.rmdir()


def _title(config: Config) -> str:
    return f"{config.algorithm.name} ({config.algorithm.mode}) on {config.task.name}, {_backend(config)}"


def _backend(config: Config) -> str:
    if config.llm.backend == "sim":
        sim = config.sim
        return f"simulated LLM (profile {sim.profile}, world {sim.world}, {config.clock} clock)"
    if starts_vllm(config):
        return f"{config.llm.model} on a vLLM of its own"
    if config.llm.backend == "replay":
        return "recorded replies"
    roles = make_roles(config).values()
    if config.llm.backend not in SHIPPED_BACKENDS:
        return f"{', '.join(model_names(roles))} on {config.llm.backend}"
    urls = dict.fromkeys(url for role in roles for model in role.models for url in endpoints(model.llm))
    return f"{', '.join(model_names(roles))} at {', '.join(urls)}"


def _tell_server(server_changes: ServerChange) -> None:
    _plain(f"{server_changes.url}: {server_changes.detail}")


def _plain(line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)
