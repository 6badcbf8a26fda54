"""What the commands that carry out a run share: reading its configuration, showing how it goes and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path

import typer
from prometheus_client import start_http_server

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.cli.terminal import console, print_plain
from flowevolve.config.backends import SHIPPED_BACKENDS
from flowevolve.config.roles import model_names
from flowevolve.config.run import Config, load_config
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.journal.files import writing
from flowevolve.journal.reading import JOURNAL
from flowevolve.runner.assemble import endpoints, make_roles, problem_notes
from flowevolve.runner.clients import SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.problem_folder import load_folder
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers
from flowevolve.runner.vllm_server import starts_vllm
from flowevolve.telemetry.logs import log_event
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import LiveTable, Progress, lines
from flowevolve.telemetry.summary import summarize
from flowevolve.telemetry.traffic_metrics import TrafficMetrics
from flowevolve.vllm.server import ServerChange


def load(config: Path, overrides: Sequence[str]) -> Config:
    """A config file, or a problem folder: what is to be known of the problem is printed."""
    if config.is_dir():
        found = load_folder(config, overrides)
        settings, notes = found.config, found.notes
    else:
        settings = load_config(config, overrides)
        notes = tuple(problem_notes(settings))
    for note in notes:
        print_plain(f"note: {note}")
    return settings


def show(
    go: Callable[[Watchers, SideTask], Awaitable[Result]],
    config: Config,
    directory: Path,
    metrics_port: int | None,
) -> None:
    """Carry out a run, showing how it goes and what it came to."""
    progress: Progress = (
        LiveTable(console, "", config.budget) if console.is_terminal else lines(print_plain, config.clock)
    )
    metrics, traffic = Metrics(), TrafficMetrics()
    metrics.registry.register(traffic)
    if metrics_port is not None:
        _serve_metrics(metrics, metrics_port)

    watchers = Watchers(
        (progress.event, log_event, metrics.event), (metrics.call, progress.call), (_tell_server,), (traffic.watch,)
    )
    with progress:
        result = clock.run(until_interrupted, partial(go, watchers), clock=config.clock)
    if result is None:
        known = (directory / JOURNAL).is_file()
        print_plain(
            f"interrupted; to go on: flowevolve resume {directory}" if known else "interrupted before the run began"
        )
        raise typer.Exit(INTERRUPTED.exit_code)
    console.print(summarize(result.to_json()))
    console.print(f"written to {directory}", highlight=False, soft_wrap=True)
    if result.report.stop_reason.exit_code:
        print_plain(f"to go on: flowevolve resume {directory}")
        raise typer.Exit(result.report.stop_reason.exit_code)


def _serve_metrics(metrics: Metrics, port: int) -> None:
    try:
        start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    except OSError as error:
        raise InputError(f"--metrics-port {port}: can't listen there: {error.strerror}; choose another") from None


@contextmanager
def fresh_directory(config: Path) -> Iterator[Path]:
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


def title(config: Config) -> str:
    return f"{config.algorithm.name} ({config.algorithm.mode}) on {config.task.name}, {describe_backend(config)}"


def describe_backend(config: Config) -> str:
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


def _tell_server(change: ServerChange) -> None:
    print_plain(f"{change.url}: {change.detail}")
