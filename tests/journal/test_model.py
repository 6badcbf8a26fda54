"""A model of the journal: whoever writes, is killed, reads, compacts and goes on, what is read is a beginning of
what was written, in whole steps, with all that was settled.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import anyio
import anyio.lowlevel
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.journal.compact import compact
from flowevolve.journal.payloads import load
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from tests.support.depth import LONG
from tests.support.moments import Moments
from tests.support.some_events import some_event

FLOWS = 3
Kind = str
"""What happens in a step: ``open``, ``send`` or ``close`` in a flow, or a ``call`` for one."""
STEP = st.lists(
    st.tuples(st.sampled_from(["open", "send", "close", "call"]), st.integers(0, FLOWS - 1)), min_size=1, max_size=4
)
NEVER = 10**6
MOMENT = st.integers(1, 300) | st.just(NEVER)


@dataclass
class Model:
    """What was written, step by step, and how many steps were settled."""

    steps: list[list[Event | CallRecord]] = field(default_factory=list)
    settled: int = 0
    without_texts: set[int] = field(default_factory=set)
    """The numbers of the calls whose texts a compaction has dropped."""

    def facts(self) -> list[Event | CallRecord]:
        return [fact for step in self.steps for fact in step]

    def events(self) -> list[Event]:
        return [fact for fact in self.facts() if isinstance(fact, Event)]

    def calls(self) -> list[CallRecord]:
        return [fact for fact in self.facts() if isinstance(fact, CallRecord)]

    def payloads(self) -> dict[str, object]:
        """Those of the items of open flows."""
        found: dict[str, object] = {}
        for event in self.events():
            if event.kind == "item.sent":
                found[str(event.data["item"])] = event.attachment
            elif event.kind == "flow.close":
                found.pop(f"{event.data['flow']}.0", None)
        return found

    def of_ended_flows(self) -> set[int]:
        """The numbers of the calls whose texts a compaction may drop."""
        ended = {f"{event.data['flow']}.0" for event in self.events() if event.kind == "flow.close"}
        return {number for number, call in enumerate(self.calls(), 1) if call.scope.item in ended}


class JournalMachine(RuleBasedStateMachine):
    """One run directory after another, each a copy of the one before as a kill left it."""

    @initialize()
    def begin(self) -> None:
        self.stack = ExitStack()
        self.home = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.moments = Moments()
        self.stack.enter_context(self.moments.counted())
        self.model = Model()
        self.copies = 0
        self.calls = 0
        """How many were made."""
        self.path = self.home / "run"
        self.directory: RunDirectory | None = RunDirectory(self.path, {})

    @precondition(lambda self: self.directory is not None)
    @rule(steps=st.lists(STEP, min_size=1, max_size=4), killed_at=st.integers(1, 60) | st.just(NEVER))
    def write(self, steps: Sequence[Sequence[tuple[Kind, int]]], killed_at: int) -> None:
        directory = self.directory
        assert directory is not None

        async def go() -> None:
            for step in steps:
                self.model.steps.append([])
                for kind, flow in step:
                    fact = self.make(kind, flow)
                    self.model.steps[-1].append(fact)
                    directory.event(fact) if isinstance(fact, Event) else directory.call(fact)
                await anyio.lowlevel.checkpoint()
            await directory.settled()

        self.moments.copy_after(killed_at, self.path, self.copy_path())
        anyio.run(go)
        if self.moments.stop():
            self.go_on_from_the_copy()
        else:
            self.model.settled = len(self.model.steps)

    def make(self, kind: Kind, flow: int) -> Event | CallRecord:
        seq = len(self.model.events())
        if kind == "call":
            self.calls += 1
            text = f"{self.calls} lone \ud800" + "x" * (self.calls * 331 % 2500)
            request = ChatRequest("m", (Message("system", "shared " * 300), Message("user", text)), 0.5, None, 7)
            scope = CallScope("screen", f"{flow}.0", "c1", 2, 0)
            return CallRecord("task", scope, request, ChatReply(text[::-1], Usage(1, 2)), None, 1, 0.0, 0.5, 1.0)
        if kind == "send":
            return replace(some_event(seq, "item.sent", item=f"{flow}.0"), attachment=("carried", seq))
        return some_event(seq, f"flow.{kind}", flow=flow)

    @precondition(lambda self: self.directory is not None)
    @rule(killed=st.booleans())
    def end(self, killed: bool) -> None:
        """Close the run, or kill it while nothing is written."""
        assert self.directory is not None
        if killed:
            shutil.copytree(self.path, self.copy_path())
            self.go_on_from_the_copy()
        else:
            self.directory.close()
            self.directory = None

    @precondition(lambda self: self.directory is None)
    @rule(killed_at=MOMENT)
    def resume(self, killed_at: int) -> None:
        self.moments.copy_after(killed_at, self.path, self.copy_path())
        self.directory = RunDirectory(self.path, {}, resume=True)
        if self.moments.stop():
            self.go_on_from_the_copy()

    @precondition(lambda self: self.directory is None)
    @rule(killed_at=MOMENT)
    def make_small(self, killed_at: int) -> None:
        self.moments.copy_after(killed_at, self.path, self.copy_path())
        compact(self.path)
        done = True
        if self.moments.stop():
            self.go_on_from_the_copy()
            with RecordedRun(self.path) as recorded:
                small = {call.id for call in recorded.calls() if call.reply is None}
            done = small != self.model.without_texts
        if done:
            self.model.without_texts |= self.model.of_ended_flows()

    def copy_path(self) -> Path:
        self.copies += 1
        return self.home / f"copy-{self.copies}"

    def go_on_from_the_copy(self) -> None:
        """Leave the directory for its copy, and find out how much of what was written is in that."""
        if self.directory is not None:
            self.directory.close()
            self.directory = None
        self.path = self.home / f"copy-{self.copies}"
        with RecordedRun(self.path) as recorded:
            there = len(list(recorded.events())) + len(list(recorded.calls()))
        extents = [0, *accumulate(map(len, self.model.steps))]
        assert there in extents, "a step is there in part"
        kept = extents.index(there)
        assert kept >= self.model.settled, "something that was settled is gone"
        self.model.steps, self.model.settled = self.model.steps[:kept], kept
        self.calls = len(self.model.calls())

    @invariant()
    def what_is_read_is_what_was_written(self) -> None:
        with RecordedRun(self.path) as recorded:
            recorded.check()
            events, calls = list(recorded.events()), list(recorded.calls())
            payloads = {name: load(data, {}) for name, data in recorded.payloads().items()}
        assert events == [replace(event, attachment=None) for event in self.model.events()]
        assert [call.id for call in calls] == list(range(1, len(calls) + 1))
        for call, record in zip(calls, self.model.calls(), strict=True):
            assert isinstance(record.request, ChatRequest)
            assert record.reply is not None
            small = call.id in self.model.without_texts
            assert call.reply == (None if small else record.reply.text)
            assert call.messages == (None if small else record.request.messages)
        assert payloads == self.model.payloads()

    def teardown(self) -> None:
        if self.directory is not None:
            self.directory.close()
        self.stack.close()


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(
    max_examples=100 if LONG else 5,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
