"""Estimates what a repeat takes from lengths that are measured before anything else is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio

from bench.confirm.gate import Gate
from bench.confirm.methods import MINIBATCH
from bench.confirm.rows import Sizes
from bench.confirm.scoring import asking
from flowevolve._util.errors import InputError
from flowevolve._util.tasks import run_all
from flowevolve.core.model import CHARS_PER_TOKEN, LLMError, Message, Usage
from flowevolve.core.task import Example, Rollout, Task
from flowevolve.prompts.reflection import reflection_examples, reflection_prompt
from flowevolve.prompts.shipped import SHIPPED

PILOT_ROWS = 12
"""How many training rows are run with the seed prompt before the rest is planned."""
SLACK = 1.25
"""Plans are multiplied by this factor, because they may err."""
PAIRS_SCORED = 4
"""The most candidates that are scored on the held-out rows in a repeat."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """What one example takes with the seed prompt, and what one reflection takes: tokens, seconds and LLM calls."""

    prompt: float
    completion: float
    seconds: float
    calls: float
    instruction: float
    """The tokens of the text that the reflection wrote, without the thinking before it."""
    reflection_prompt: float
    reflection_completion: float
    reflection_seconds: float


@dataclass(frozen=True, slots=True)
class Need:
    """What one repeat takes: both methods and the scoring on held-out rows."""

    usage: Usage
    minutes: float

    def __add__(self, other: Need) -> Need:
        return Need(self.usage + other.usage, self.minutes + other.minutes)


async def measure(gate: Gate, name: str, task: Task) -> Lengths:
    """Run a few training rows with the seed prompt, and reflect on some of them once.

    Raises:
        InputError: if no row gets an answer.
    """
    examples, rollouts, seconds, failed = task.data.train[:PILOT_ROWS], list[Rollout](), list[float](), list[LLMError]()

    async def one(example: Example) -> None:
        began = anyio.current_time()
        try:
            rollouts.append(await task.rollout(task.seed(), example, asking(gate, f"pilot/{name}/rollouts")))
        except LLMError as error:
            failed.append(error)
        seconds.append(anyio.current_time() - began)

    await run_all([partial(one, example) for example in examples])
    if not rollouts:
        raise InputError(f"{name}: each of the first {len(examples)} rows failed; the last: {failed[-1]}")
    component, text = next(iter(task.seed().items()))
    asked = reflection_prompt(SHIPPED, component, text, reflection_examples(component, rollouts[:MINIBATCH]))
    began = anyio.current_time()
    written = ""
    with suppress(LLMError):  # what it took is known all the same
        written = (await gate.ask(f"pilot/{name}/reflections", [Message("user", asked)])).text
    took = anyio.current_time() - began
    rows, reflections = gate.meter.paid(f"pilot/{name}/rollouts"), gate.meter.paid(f"pilot/{name}/reflections")
    return Lengths(
        rows.usage.prompt_tokens / len(examples),
        rows.usage.completion_tokens / len(examples),
        sum(seconds) / len(seconds),
        rows.calls / len(examples),
        len(written) / CHARS_PER_TOKEN,
        reflections.usage.prompt_tokens / reflections.calls,
        reflections.usage.completion_tokens / reflections.calls,
        took,
    )


def need(lengths: Lengths, sizes: Sizes, calls: int, concurrency: int) -> Need:
    """What a repeat takes with rows of these lengths, if all metric calls go into proposals.

    An evolved prompt is assumed to be as long as what the reflection wrote, and to be in every call of an example. gepa
    may exceed its metric calls to finish an iteration.
    """
    examples = 2 * calls + sizes.validation + 2 * MINIBATCH + PAIRS_SCORED * sizes.held_out
    reflections = 2 * calls / (2 * MINIBATCH)
    prompt = lengths.prompt + lengths.calls * lengths.instruction
    usage = Usage(
        round(SLACK * (examples * prompt + reflections * (lengths.reflection_prompt + lengths.reflection_completion))),
        round(SLACK * (examples * lengths.completion + reflections * lengths.reflection_completion)),
    )
    iterations = calls / (2 * MINIBATCH)  # gepa's come one after the other; ours take no longer
    seconds = 2 * iterations * (2 * lengths.seconds + lengths.reflection_seconds)
    seconds += PAIRS_SCORED * sizes.held_out / concurrency * lengths.seconds
    return Need(usage, SLACK * seconds / 60)


async def lengths_of(gate: Gate, tasks: Mapping[str, Task], file: Path) -> Mapping[str, Lengths]:
    """The lengths for each set of rows: measured now, or kept from an earlier start."""
    kept = anyio.Path(file)
    known: dict[str, Lengths] = {}
    if await kept.exists():
        known = {name: Lengths(**each) for name, each in json.loads(await kept.read_text(encoding="utf-8")).items()}
    for name, task in tasks.items():
        if name not in known:
            known[name] = await measure(gate, name, task)
            content = json.dumps({each: asdict(found) for each, found in known.items()}, indent=2)
            await kept.write_text(content, encoding="utf-8")
    return known


def largest(needs: Sequence[Need]) -> Need:
    """The largest of each amount in these needs."""
    return Need(
        Usage(
            max(each.usage.prompt_tokens for each in needs),
            max(each.usage.completion_tokens for each in needs),
        ),
        max(each.minutes for each in needs),
    )
