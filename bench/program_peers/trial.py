"""One run of a system on a simulated server of its own, and what was recorded of it: its LLM calls and evaluations."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import anyio

from bench._lib.methods.recording import Span
from bench._lib.methods.runs import Server, serving
from bench.program_peers.evaluations import Evaluation, read_journal, read_log
from bench.program_peers.folders import entry, write_folder
from bench.program_peers.processes import Session, session
from bench.program_peers.rescoring import rescored
from bench.program_peers.server import ServerJob
from bench.program_peers.systems import Job, System

LOOK_SECONDS = 0.2
"""Seconds from one look at the server's record of a run to the next."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run. After ``kill_at`` answers all processes are killed, and the run is resumed. Answer number
    ``endless_at`` has a program that never ends.
    """

    system: str
    problem: str
    seed: int
    calls: int
    width: int
    profile: str
    speed: float
    timeout: float
    patience: float
    """Seconds after which a run is ended if it has not ended by itself."""
    kill_at: int | None = None
    endless_at: int | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """A system's process from its start to its end. Times are seconds since its first LLM call began."""

    spans: tuple[Span, ...]
    evaluations: tuple[Evaluation, ...]
    start_up: float
    """Seconds from the start of the process to its first call."""
    start_up_cpu: float
    cpu: float
    """CPU seconds of all its processes, ``start_up_cpu`` included."""
    lasted: float
    """Seconds from the first call to the end of the process."""
    ended: str
    """``itself``, ``with exit code N``, ``killed``, or ``patience`` if it was ended because it took too long."""
    left_over: int = 0
    """How many of its processes still existed when the command had ended by itself."""


@dataclass(frozen=True, slots=True)
class Trial:
    plan: Plan
    lives: tuple[Life, ...]
    best: float | None
    """The score of the best program that the system names, judged by us; None if it names none."""


def perform(system: System, plan: Plan) -> Trial:
    job = ServerJob(plan.profile, plan.speed, plan.seed, entry(plan.problem), plan.endless_at)
    arguments = [json.dumps(asdict(job))]
    with (
        serving(*arguments, module="bench.program_peers.server") as server,
        tempfile.TemporaryDirectory() as made,
    ):
        place = Path(made)
        place.chmod(0o755)  # programs in the sandbox run as another user
        task = Job(plan.problem, server.url, plan.calls, plan.width, plan.seed, plan.timeout, place)
        write_folder(plan.problem, system.form, task.folder)
        lives = [_live(system, task, plan, server, again=False)]
        if lives[-1].ended == "killed":
            server.begin()
            lives.append(_live(system, task, plan, server, again=True))
        program = _best(task.out / system.best)
        best = None if program is None else anyio.run(rescored, plan.problem, program)
    return Trial(plan, tuple(lives), best)


def _live(system: System, job: Job, plan: Plan, server: Server, *, again: bool) -> Life:
    log = job.place / f"evaluations_{'after' if again else 'before'}.jsonl"
    environment = {
        "EVALUATION_LOG": str(log),
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": ":".join(map(str, (job.folder, *system.python_path))),
        **system.environment,
    }
    before, begun = _children_cpu(), time.monotonic()
    output = job.place / "output.txt"
    with session(system.command(job, again), environment, job.place, output) as running:
        ended, start_up_cpu = _watch(running, server, begun + plan.patience, None if again else plan.kill_at)
        finished, spans = time.monotonic(), server.read().spans
        cpu = running.cpu_seconds()
        left_over = running.others()
    if running.has_ended:
        cpu = _children_cpu() - before
    if not spans and not again:
        print(output.read_text(errors="replace")[-3000:], file=sys.stderr)
        raise RuntimeError(f"{system.name}: it has made no LLM call; the end of what it said stands above")
    first = min((span.begun for span in spans), default=begun)
    return Life(
        spans=tuple(replace(span, begun=span.begun - first, ended=span.ended - first) for span in spans),
        evaluations=tuple(read_journal(job.out) if system.package is None else read_log(log, first)),
        start_up=first - begun,
        start_up_cpu=start_up_cpu,
        cpu=cpu,
        lasted=finished - first,
        ended=ended,
        left_over=left_over if running.has_ended else 0,
    )


def _watch(running: Session, server: Server, deadline: float, kill_at: int | None) -> tuple[str, float]:
    """Wait for the end of a run, or for the moment to kill it. Returns how it ended, as in `Life.ended`, and the CPU
    seconds that it had taken when its first LLM call had begun.
    """
    start_up_cpu: float | None = None
    while time.monotonic() < deadline:
        spans = server.read().spans
        if start_up_cpu is None and spans:
            start_up_cpu = running.cpu_seconds()
        if kill_at is not None and sum(span.tokens is not None for span in spans) >= kill_at:
            return "killed", start_up_cpu or 0.0
        code = running.wait(LOOK_SECONDS)
        if code is not None:
            return "itself" if code == 0 else f"with exit code {code}", start_up_cpu or 0.0
    return "patience", start_up_cpu or 0.0


def _best(file: Path) -> str | None:
    if not file.exists():
        return None
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".json":
        return text
    (program,) = json.loads(text)["best"]["components"].values()
    return str(program)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
