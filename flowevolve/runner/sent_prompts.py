"""The prompts that a run would send to its models, found by a short run against the simulated server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.config.run import WORLDS_OF_TASKS, Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import CHARS_PER_TOKEN, ChatRequest, Message
from flowevolve.core.templates import Prompt
from flowevolve.runner.registries import ALGORITHMS
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

EVALUATIONS, PROPOSALS = 40, 24
_PROGRAMS = {"task": {"name": "program", "problem": "circle_packing_26"}, "sandbox": {"timeout": 20}}
_ROWS = (("itchy red skin", "rash"), ("skin rash spreads", "rash"), ("cough and cold", "flu"), ("fever, cough", "flu"))
SHORT: Mapping[str, Mapping[str, object]] = {
    "gepa": {"staleness": {"policy": "reflective"}},
    "combee": {"algorithm": {"batch": 4}},
    "ace": {"algorithm": {"epochs": 1, "validate_every": 12}},
    "levi": {"algorithm": {"seeds": 2, "variants": 3, "advice_every": 8, "shift_every": 6}, **_PROGRAMS},
    "code_evolve": {"algorithm": {"islands": 2, "start_programs": 1, "migration": {"every": 4}}, **_PROGRAMS},
    "cse": {"algorithm": {"plans": 3, "compress_tokens": 200}, **_PROGRAMS},
    "context_evolve": _PROGRAMS,
    "best_of_n": _PROGRAMS,
    "one_plus_lambda": _PROGRAMS,
    "meta_harness": {"algorithm": {"run_seconds": 2}},
}
"""Settings with which each shipped algorithm soon sends all of its prompts."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The first prompt of a role that was written from one template or, without a template, sent by one stage."""

    role: str
    stage: str
    template: str | None
    messages: tuple[Message, ...]

    def __str__(self) -> str:
        tokens = sum(len(message.content) for message in self.messages) // CHARS_PER_TOKEN
        source = (
            "no template, as the prompt is the task's own" if self.template is None else f"template {self.template}"
        )
        head = f"==== role {self.role} · stage {self.stage} · {source} · about {tokens} tokens"
        if len(self.messages) == 1:
            return f"{head}\n\n{self.messages[0].content}"
        return "\n\n".join([head, *(f"[{message.role}]\n{message.content}" for message in self.messages)])


def simulated(table: Mapping[str, object], algorithm: str) -> dict[str, object]:
    """A configuration with this algorithm that calls the simulated server, on the virtual clock, for a short time.

    Settings of an algorithm with another name, of models and of budgets are left out.
    """
    own, task = _table(table, "algorithm"), _table(table, "task")
    settings = own if own.get("name", algorithm) == algorithm else {}
    return {
        **{name: each for name, each in table.items() if name not in ("start", "vllm", "stopping", "held_out")},
        "clock": "virtual",
        "algorithm": {**settings, "name": algorithm},
        "llm": {"backend": "sim"},
        "sim": {"profile": "instant", "world": WORLDS_OF_TASKS.get(str(task.get("name")), "rules")},
        "budget": {"evaluations": EVALUATIONS, "proposals": PROPOSALS, "seconds": 10.0**6},
    }


def _table(table: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def sent_by(config: Config) -> list[Sent]:
    """Run a configuration to its end, and return the first prompt of each kind, in the order in which they were sent.

    Raises:
        InputError: if the configuration can't be run.
    """
    found: dict[tuple[str, str], Sent] = {}

    def note(record: CallRecord) -> None:
        if not isinstance(record.request, ChatRequest):
            return
        messages = record.request.messages
        first = messages[0].content
        template = first.template if isinstance(first, Prompt) else None
        key = (record.role, template or record.scope.stage)
        found.setdefault(key, Sent(record.role, record.scope.stage, template, messages))

    async def go() -> Result:
        return await run(config, watchers=Watchers(calls=(note,)))

    clock.run(go, clock="virtual")
    return list(found.values())


def example_prompts(algorithm: str) -> list[Sent]:
    """Like `sent_by`, for a shipped algorithm with an example of a task that suits it.

    Raises:
        InputError: if there is no example for an algorithm of this name.
    """
    if algorithm not in SHORT:
        if algorithm not in ALGORITHMS.names():
            raise InputError(f"unknown algorithm {algorithm!r}; {did_you_mean(algorithm, ALGORITHMS.names())}")
        there = ", ".join(SHORT)
        raise InputError(
            f"{algorithm}: there is no example of a configuration; name one of yours with --config (there are "
            f"examples for {there})"
        )
    with TemporaryDirectory() as folder:
        example = dict(SHORT[algorithm])
        if algorithm == "meta_harness":
            example["task"] = {"name": "harness", "sets": _labelled(Path(folder))}
        return sent_by(parse_config(simulated(example, algorithm), f"the example of {algorithm}"))


def _labelled(folder: Path) -> Mapping[str, object]:
    path = folder / "rows.csv"
    lines = [f'"{text}",{label}' for text, label in _ROWS * 4]
    path.write_text("\n".join(["question,answer", *lines]), encoding="utf-8")
    return {"symptoms": {"path": str(path), "sizes": {"train": 8, "val": 4, "test": 4}}}
