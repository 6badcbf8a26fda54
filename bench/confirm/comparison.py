"""Performs repeats of both methods, one after the other, as many as the cap allows."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

from bench._lib.paths import ROOT
from bench.confirm.claims import LEAST_REPEATS
from bench.confirm.gate import Gate, url_of
from bench.confirm.meter import DIGITS, CapReachedError, Unit
from bench.confirm.methods import Job
from bench.confirm.plan import Need, largest, lengths_of, need
from bench.confirm.repeats import METHODS, SITTING, Method, Repeat
from bench.confirm.scoring import HeldOutScores
from bench.confirm.settings import Settings
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve.core.model import Usage
from flowevolve.core.task import Task


@dataclass(frozen=True, slots=True)
class Caps:
    """What may be spent: money and tokens over all starts of the command, and time in this one."""

    amounts: Mapping[Unit, float]
    minutes: float | None


class Comparison:
    """The repeats in a folder. ``tasks`` include the held-out rows; the methods' processes load them without these."""

    def __init__(
        self, settings: Settings, caps: Caps, tasks: Mapping[str, Task], out: Path, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._caps = caps
        self._tasks = tasks
        self._out = out
        self._say = say
        self._minutes: list[float] = []
        """How long each repeat of this start took."""

    async def run(self, gate: Gate, address: str, most: int) -> None:
        """Perform repeats until there are ``most`` of them, or the caps have no room for another.

        Raises:
            InputError: if the caps have no room for a single one.
            FlowevolveError: if a method failed; it says where to find out why.
        """
        with anyio.move_on_after(None if self._caps.minutes is None else 60 * self._caps.minutes) as time:
            await self._repeats(gate, address, most, time)
        if time.cancelled_caught:
            self._say("The time is over.")

    async def _repeats(self, gate: Gate, address: str, most: int, time: anyio.CancelScope) -> None:
        try:
            planned = await self._plan(gate)
            self._announce(gate, planned, most, time)
            for number in range(most):
                repeats = [Repeat(self._out, name, number) for name in self._tasks]
                if all(self._complete(each) for each in repeats):
                    continue
                if lacking := self._lacking(gate, self._need(gate, planned, number), repeats, time):
                    self._say(f"Repeat {number + 1} is not begun: {lacking}.")
                    return
                began = anyio.current_time()
                for each, name in zip(repeats, self._tasks, strict=True):
                    await self._make(gate, address, name, each)
                self._minutes.append((anyio.current_time() - began) / 60)
        except CapReachedError as error:
            self._say(f"Stopped: {error}.")

    async def _plan(self, gate: Gate) -> Need:
        settings = self._settings
        lengths = await lengths_of(gate, self._tasks, self._out / "lengths.json")
        needs = [need(each, settings.sizes, settings.calls, settings.sampling.concurrency) for each in lengths.values()]
        return sum(needs, Need(Usage(), 0.0))

    def _need(self, gate: Gate, planned: Need, number: int) -> Need:
        """What a repeat takes: as planned or, once there are complete ones, a tenth more than the largest of these."""
        made = []
        for earlier in range(number):
            repeats = [Repeat(self._out, name, earlier) for name in self._tasks]
            if all(self._complete(each) for each in repeats):
                usage = sum((gate.meter.paid(each.work).usage for each in repeats), Usage())
                made.append(Need(Usage(round(1.1 * usage.prompt_tokens), round(1.1 * usage.completion_tokens)), 0.0))
        minutes = 1.1 * max(self._minutes) if self._minutes else planned.minutes
        return Need(largest(made).usage if made else planned.usage, minutes)

    def _lacking(self, gate: Gate, needed: Need, repeats: list[Repeat], time: anyio.CancelScope) -> str:
        """What the caps have too little of for these repeats; empty if they have enough."""
        paid = sum((gate.meter.paid(each.work).usage for each in repeats), Usage())
        for unit in self._caps.amounts:
            takes, left = gate.meter.amount(unit, needed.usage), gate.meter.left(unit)
            if takes - gate.meter.amount(unit, paid) > left:
                return f"it takes about {takes:{DIGITS[unit]}} {unit}, and {left:{DIGITS[unit]}} are left"
        minutes = (time.deadline - anyio.current_time()) / 60
        if needed.minutes > minutes:
            return f"it takes about {needed.minutes:.1f} minutes, and {minutes:.1f} are left"
        return ""

    def _announce(self, gate: Gate, planned: Need, most: int, time: anyio.CancelScope) -> None:
        """Say what is planned. Raises: InputError if no repeat is complete and the caps have no room for one."""
        first = [Repeat(self._out, name, 0) for name in self._tasks]
        begun = all(self._complete(each) for each in first)
        lacking = "" if begun else self._lacking(gate, planned, first, time)
        if lacking:
            raise InputError(
                f"the cap has no room for one repeat: {lacking}; raise the cap, or make repeats smaller with --calls "
                "and --held-out"
            )
        amounts = [f"{gate.meter.amount(unit, planned.usage):{DIGITS[unit]}} {unit}" for unit in self._caps.amounts]
        self._say(f"A repeat takes about {', '.join([*amounts, f'{planned.minutes:.1f} minutes'])} at most.")
        fits = [gate.meter.left(unit) / gate.meter.amount(unit, planned.usage) for unit in self._caps.amounts]
        if self._caps.minutes is not None:
            fits.append(self._caps.minutes / planned.minutes)
        repeats = min(most, int(min(fits)))
        if repeats < LEAST_REPEATS and not begun:
            self._say(f"Planned: {repeats}. Verdicts need {LEAST_REPEATS} repeats, so they will be “can't tell”.")

    async def _make(self, gate: Gate, address: str, name: str, repeat: Repeat) -> None:
        """Do what is missing of a repeat: run the methods, in random order, then score their candidates."""
        order = list(METHODS)
        random.Random(repeat.work).shuffle(order)
        for method in order:
            if not repeat.course(method).ended:
                await self._evolve(gate, address, name, repeat, method)
                await gate.idle()
        task = self._tasks[name]
        candidates = list(repeat.candidates(task).values())
        await HeldOutScores(repeat.scores_file).score(gate, f"{repeat.work}/held_out", task, candidates)
        self._say(f"{name}, repeat {repeat.number + 1}: {self._line(repeat, task)}")

    async def _evolve(self, gate: Gate, address: str, name: str, repeat: Repeat, method: Method) -> None:
        settings, work = self._settings, f"{repeat.work}/{method}"
        job = Job(
            url=url_of(address, work),
            model=settings.sampling.model,
            rows=name,
            data=None if settings.data is None else str(settings.data.resolve()),
            sizes=(settings.sizes.train, settings.sizes.validation, settings.sizes.held_out),
            calls=settings.calls,
            concurrency=settings.sampling.concurrency,
            seed=repeat.number,
            folder=str((repeat.folder / method).resolve()),
        )
        repeat.folder.mkdir(parents=True, exist_ok=True)
        log = repeat.folder / f"{method}.log"
        with repeat.steps_file(method).open("a", encoding="utf-8") as steps, log.open("a", encoding="utf-8") as errors:
            steps.write(json.dumps({SITTING: True}) + "\n")
            command = [sys.executable, "-m", "bench.confirm.methods", method, json.dumps(asdict(job))]
            # In a session of its own, so that Ctrl-C reaches only this process, which then ends the other.
            async with await anyio.open_process(command, cwd=ROOT, stderr=errors, start_new_session=True) as process:
                async for line in _lines(process):
                    steps.write(line + "\n")
                    steps.flush()
                code = await process.wait()
        if code != 0 and gate.capped:
            raise CapReachedError(f"{work} was cut off by the cap")
        if code != 0:
            raise FlowevolveError(f"{work}: ended with {code}; {log} says why, and the same command goes on with it")

    def _complete(self, repeat: Repeat) -> bool:
        return repeat.complete(self._tasks[repeat.work.partition("/")[0]])

    def _line(self, repeat: Repeat, task: Task) -> str:
        scores = {of: sum(each) / len(each) for of, each in repeat.scores(task).items()}
        seconds = {method: repeat.course(method).steps[-1].seconds for method in METHODS}
        said = ", ".join(f"{of} {score:.3f}" for of, score in scores.items())
        return f"held out {said}; gepa took {seconds['gepa']:.0f} s, the defaults {seconds['defaults']:.0f} s"


async def _lines(process: Process) -> AsyncIterator[str]:
    """The whole lines that a process prints."""
    assert process.stdout is not None
    rest = b""
    async for piece in process.stdout:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode()
