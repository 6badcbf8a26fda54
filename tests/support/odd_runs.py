"""Short runs of every algorithm against a simulated server whose replies have an odd form."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import cast

import anyio
import pytest

from bench._lib.house_style import make_rows
from bench.simtest.tasks import SOURCE as PLAIN_SOURCE
from flowevolve._util import clock
from flowevolve._util.thinking import split_thinking
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import CandidateProposed, ReplyPartlyRead
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest
from flowevolve.core.pool import Note
from flowevolve.core.reply_reading import Reason
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.core.task import Task
from flowevolve.programs.problem import Case, Verdict
from flowevolve.programs.task import ProgramTask
from flowevolve.prompts.reading.again import prompt_of
from flowevolve.runner.clients import SideTask
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sandbox import Sandbox
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.worlds import catalog
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.tasks.house_style import house_style_task
from tests.support.odd_replies import FIELD, Form, Kind, Reply
from tests.support.problems import Nearest

SOURCE = f"""\
{PLAIN_SOURCE}

def ask(shift):
    return guess(shift)
"""
ROWS = [("itchy red skin", "rash"), ("skin rash spreads", "rash"), ("cough and cold", "flu"), ("fever, cough", "flu")]
_INSTRUCTIONS = house_style_task(make_rows(rules=8, per_example=3, overlap=0.3, rows=24, seed=1))
_CODERS = {"large": {"model": "large-coder"}, "small": {"model": "small-coder"}}
_VERDICTS: dict[tuple[Artifact, str], Verdict] = {}


class Known(Nearest):
    """A problem that runs each program once, however many runs come to it."""

    def __init__(self) -> None:
        super().__init__(2, SOURCE)
        self._one = anyio.Lock()

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        key = (artifact, case.id)
        async with self._one:  # so that they end in the order in which they began, however busy the machine is
            if key not in _VERDICTS:
                _VERDICTS[key] = await super().judge(artifact, case, sandbox)
        await anyio.sleep(1)  # so that it takes as long whether it was known or not
        return _VERDICTS[key]


def instructions(folder: Path) -> Task:
    return _INSTRUCTIONS


def programs(folder: Path) -> Task:
    return ProgramTask(Known(), SandboxSettings(preload=(), timeout=5))


@dataclass(frozen=True)
class Setting:
    """A short run of an algorithm: its settings, its world, and what it works on."""

    world: str
    algorithm: Mapping[str, object]
    task: Callable[[Path], Task] | None
    budget: Mapping[str, int]
    sections: Mapping[str, object] = field(default_factory=dict)


SETTINGS: Mapping[str, Setting] = {
    "gepa": Setting(
        "rules", {"max_in_flight": 6}, instructions, {"proposals": 12}, {"staleness": {"policy": "reflective"}}
    ),
    "combee": Setting("rules", {"max_in_flight": 8, "batch": 4}, instructions, {"proposals": 6}),
    "ace": Setting("rules", {"max_in_flight": 4, "epochs": 1, "validate_every": 12}, instructions, {"seconds": 10**6}),
    "levi": Setting(
        "code",
        {
            "mode": "sync",
            "max_in_flight": 4,
            "seeds": 2,
            "variants": 3,
            "advice_every": 8,
            "shift_every": 6,
            "form": "edits",
        },
        programs,
        {"evaluations": 24},
        {"llm": {"roles": _CODERS}},
    ),
    "best_of_n": Setting("code", {"mode": "sync", "max_in_flight": 4, "form": "whole"}, programs, {"evaluations": 16}),
    "one_plus_lambda": Setting(
        "code", {"mode": "sync", "max_in_flight": 4, "form": "edits"}, programs, {"evaluations": 16}
    ),
    "code_evolve": Setting(
        "code",
        {"mode": "sync", "max_in_flight": 4, "islands": 2, "start_programs": 1, "migration": {"every": 4}},
        programs,
        {"evaluations": 20},
    ),
    "context_evolve": Setting("code", {"mode": "sync", "max_in_flight": 4}, programs, {"evaluations": 14}),
    "cse": Setting(
        "code", {"mode": "sync", "max_in_flight": 4, "plans": 3, "compress_tokens": 200}, programs, {"evaluations": 14}
    ),
    "meta_harness": Setting("harness", {"run_seconds": 2, "max_in_flight": 2}, None, {"proposals": 6}),
}


@dataclass
class Ran:
    """What came of a run: its result, its events, and what the server was asked."""

    result: Result
    events: list[Event]
    asked: list[ChatRequest]
    forms: dict[Kind, int]
    """Of each kind of reply, how many had the odd form."""

    @property
    def decisions(self) -> list[object]:
        """What was proposed and what became of it, in the order of the pool's log, with all that was noted."""
        pool = self.result.report.pool
        proposed = [
            (dict(made.artifact), made.operator, made.parents)
            for event in self.events
            if isinstance(event.body, CandidateProposed)
            for made in [event.body.proposal()]
        ]
        kept = [(each.id, each.scores, pool.status(each.id)) for _, each in pool.candidates()]
        noted = [
            change.data for update in pool.updates_between(0) for change in update.changes if isinstance(change, Note)
        ]
        return [*proposed, *kept, *noted]

    @property
    def unread(self) -> list[tuple[str, object]]:
        """Kind and reason of each event that says a reply was not read, or not all of it but for drafts."""
        found: list[tuple[str, object]] = []
        for event in self.events:
            if isinstance(event.body, ReplyPartlyRead):
                told = zip(event.body.reasons, event.body.errors, strict=True)
                errors = [error for reason, error in told if reason != Reason.DRAFT.value]
                found += [(event.kind, errors)] if errors else []
            elif event.kind in ("reply.unparsable", "reply.missing"):
                found.append((event.kind, event.data["reason"] if "reason" in event.data else event.data["error"]))
        return found

    def texts(self) -> list[str]:
        """All that a model or a score was shown: candidates, notes, prompts, and the events but for those that quote a
        reply.
        """
        shown = [
            message.content for request in self.asked for message in request.messages if message.role != "assistant"
        ]
        told = [str(each.data) for each in self.events if not each.kind.startswith("reply.")]
        return [*map(str, self.decisions), *shown, *told]


def drawn(forms: Sequence[Form], salt: str) -> Form:
    """A form that gives each reply one of those that it can have, by its text alone."""

    def written(reply: Reply) -> str | None:
        number = int.from_bytes(blake2b(f"{salt}{reply.prompt}{reply.text}".encode(), digest_size=8).digest(), "big")
        fitting = [odd for form in forms if (odd := form(reply)) is not None]
        return fitting[number % len(fitting)] if fitting else None

    return written


def evolve(
    name: str,
    form: Form | None,
    patch: pytest.MonkeyPatch,
    folder: Path,
    budget: Mapping[str, int] | None = None,
    *,
    side_task: SideTask | None = None,
    watch: Callable[[Event], None] = lambda event: None,
) -> Ran:
    """A run of an algorithm, the same each time but for the form of the replies; None: as they are. ``side_task`` goes
    on beside it, and ``watch`` is told of its events.
    """
    setting = SETTINGS[name]
    asked: list[ChatRequest] = []
    forms: dict[Kind, int] = {}
    plain: dict[str, str] = {}
    make = catalog.WORLDS[setting.world]

    class Odd:
        def __init__(self, params: RulesParams) -> None:
            self._world = make(params)

        def reply(self, request: ChatRequest, rng: random.Random) -> str:
            asked.append(request)
            messages = tuple(replace(each, content=plain.get(each.content, each.content)) for each in request.messages)
            as_said = replace(request, messages=messages)
            text = self._world.reply(as_said, random.Random(f"{request.seed} {messages}"))
            reply = Reply(text, _prompt(request))
            odd = None if form is None else form(reply)
            if odd is None:
                return text
            forms[reply.kind] = forms.get(reply.kind, 0) + 1
            plain[_answer(odd)] = text
            return odd

    events: list[Event] = []
    llm = {"concurrency": 8, **cast("Mapping[str, object]", setting.sections.get("llm", {}))}
    config = parse_config(
        {
            "preset": "plain",
            "clock": "virtual",
            "algorithm": {"name": name, **setting.algorithm},
            "sim": {"world": setting.world, "profile": "instant", "preset": "easy"},
            "budget": budget or setting.budget,
            "stopping": {"fruitless": 1000},
            **(harnesses(folder) if setting.task is None else {}),
            **setting.sections,
            "llm": llm,
        },
        "test",
    )

    async def go() -> Result:
        task = None if setting.task is None else setting.task(folder)
        return await run(config, task=task, watchers=Watchers(events=(events.append, watch)), side_task=side_task)

    with patch.context() as patched:
        patched.setattr(catalog, "WORLDS", {**catalog.WORLDS, setting.world: Odd})
        patched.setattr(SimBackend, "answer", _with_field(SimBackend.answer))
        return Ran(clock.run(go, clock="virtual"), events, asked, forms)


def harnesses(folder: Path) -> Mapping[str, object]:
    """The task of a run that evolves harnesses."""
    path = folder / "rows.csv"
    lines = [f'"{text}",{label}' for text, label in ROWS * 4]
    path.write_text("\n".join(["question,answer", *lines]), encoding="utf-8")
    sets = {"symptoms": {"path": str(path), "sizes": {"train": 8, "val": 4, "test": 4}}}
    return {"sandbox": {"preload": []}, "task": {"name": "harness", "sets": sets}}


def _answer(odd: str) -> str:
    """A reply as the chat goes on with it, without its thinking."""
    return split_thinking(odd.rpartition(FIELD)[2]).answer


def _prompt(request: ChatRequest) -> str:
    asked = prompt_of(request.messages)
    first = request.messages[0].content
    return first if first.startswith("# Write harnesses") else asked


def _with_field(answer: Callable[..., object]) -> Callable[..., object]:
    """The server's way to answer, with thinking in a field of its own where a reply has it."""

    async def answered(self: SimBackend, request: ChatRequest, **options: object) -> ChatReply:
        reply: ChatReply = await answer(self, request, **options)  # type: ignore[misc]
        _, parted, rest = reply.text.partition(FIELD)
        thinking, _, text = rest.partition(FIELD)
        return replace(reply, text=text, thinking=thinking) if parted else reply

    return answered
