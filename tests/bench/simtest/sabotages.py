"""Small changes of the engine, each of which breaks one rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import anyio
import pytest

from bench.simtest import trial
from bench.simtest.rules import Rule
from flowevolve.core import calls
from flowevolve.core.event_kinds import CandidateRejected, ItemDone
from flowevolve.core.events import EventLog
from flowevolve.core.logged_changes import LoggedAdd, LoggedChange, logged_change
from flowevolve.core.pool import Change, Pool, Vetoed
from flowevolve.engine import contract
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.engine import Engine
from flowevolve.engine.flows import Flows
from flowevolve.engine.ledger import Ledger
from flowevolve.engine.pause import Paused
from flowevolve.engine.pool_and_archives import PoolAndArchives
from flowevolve.engine.queue import ItemQueue
from flowevolve.engine.recovery.interrupted_work import InterruptedWork
from flowevolve.engine.recovery.recorded_replies import RecordedReplies
from flowevolve.engine.recovery.recovery import _LogReplay
from flowevolve.engine.staleness_check import StalenessCheck
from flowevolve.engine.stopping import Stopping
from flowevolve.engine.stream import Stream
from flowevolve.engine.workers import WorkerPool
from flowevolve.llm.client import client
from flowevolve.llm.client.accounting import Account
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.staleness import Guarded

Patch = pytest.MonkeyPatch


def numbers_skip_one(patch: Patch) -> None:
    emit = EventLog.emit

    def skipping(self: Any, body: Any, attachment: object = None) -> None:
        emit(self, body, attachment)
        self._next += self._next == 30

    patch.setattr(EventLog, "emit", skipping)


def a_flow_that_ended_is_not_closed(patch: Patch) -> None:
    leave = Flows.leave
    patch.setattr(Flows, "leave", lambda self, item: leave(self, item) and item.flow % 3 != 2)


def an_item_is_taken_and_not_worked_on(patch: Patch) -> None:
    take, taken = ItemQueue.take, count(1)

    async def losing(self: Any) -> list[Any]:
        while True:
            entries = await take(self)
            if next(taken) % 15:
                return entries

    patch.setattr(ItemQueue, "take", losing)


def an_item_is_taken_twice(patch: Patch) -> None:
    mark_taken = Dispatcher.mark_taken

    def twice(self: Any, stage: Any, item: Any, judged: Any = None) -> None:
        mark_taken(self, stage, item, judged)
        mark_taken(self, stage, item, judged)

    patch.setattr(Dispatcher, "mark_taken", twice)


def what_was_handed_on_is_handed_on_again_after_a_kill(patch: Patch) -> None:
    patch.setattr(InterruptedWork, "handed_on", lambda self, stage, payload: False)


def more_flows_are_opened_than_may_be(patch: Patch) -> None:
    def one_more(self: Any) -> int:
        limit = self._dispatcher.counters.flow_limit
        return 1 if limit is None else limit.flows + 1

    patch.setattr(Stream, "width", property(one_more))


def a_stage_has_one_worker_too_many(patch: Patch) -> None:
    init = WorkerPool.__init__

    def larger(self: Any, stage: Any) -> None:
        init(self, stage)
        self.wanted += 1

    patch.setattr(WorkerPool, "__init__", larger)


def a_pause_holds_nothing_back(patch: Patch) -> None:
    patch.setattr(Paused, "begin", lambda self, *, items: None)


def a_version_is_left_out(patch: Patch) -> None:
    commit = Pool.commit

    def leaping(self: Any, changes: Sequence[Change], *, cause: str, time: float) -> Any:
        update = commit(self, changes, cause=cause, time=time)
        return replace(update, version=update.version + (update.version > 2))

    patch.setattr(Pool, "commit", leaping)


def a_candidate_is_rejected_twice(patch: Patch) -> None:
    emit = EventLog.emit

    def twice(self: Any, body: Any, attachment: object = None) -> None:
        for _ in range(2 if isinstance(body, CandidateRejected) else 1):
            emit(self, body, attachment)

    patch.setattr(EventLog, "emit", twice)


def a_gap_is_not_seen(patch: Patch) -> None:
    patch.setattr(StalenessCheck, "gap", lambda self, item: 0)


def what_is_too_old_goes_on(patch: Patch) -> None:
    patch.setattr(Guarded, "decide", lambda self, facts: "continue")


def more_calls_are_sent_than_may_be(patch: Patch) -> None:
    init = Scheduler.__init__

    def wider(self: Any, limit: int, *rest: Any) -> None:
        init(self, limit + 1, *rest)

    patch.setattr(Scheduler, "__init__", wider)


def work_is_begun_without_room(patch: Patch) -> None:
    patch.setattr(Ledger, "begin", lambda self, flow, item, cost: None)
    patch.setattr(Ledger, "_reserved", lambda self, dimension: 0.0)


def calls_go_on_when_the_tokens_are_spent(patch: Patch) -> None:
    patch.setattr(Ledger, "check_unforeseen", lambda self: None)


def what_was_spent_is_forgotten_in_a_kill(patch: Patch) -> None:
    restore = Ledger.restore
    patch.setattr(Ledger, "restore", lambda self, spent, ended: restore(self, type(spent)(), ended))


def what_was_answered_is_asked_again(patch: Patch) -> None:
    async def nothing(self: Any, scope: Any, asked: Any, kind: Any) -> None:
        return None

    patch.setattr(RecordedReplies, "_find", nothing)


def what_calls_cost_is_forgotten_in_a_kill(patch: Patch) -> None:
    patch.setattr(Account, "restore", lambda self, spending: None)


def scores_are_written_down_wrong(patch: Patch) -> None:
    def wrong(change: Change) -> LoggedChange:
        logged = logged_change(change)
        if isinstance(logged, LoggedAdd) and logged.operator != "seed":
            return replace(logged, scores=dict.fromkeys(logged.scores, 0.25))
        return logged

    patch.setattr(contract, "logged_change", wrong)


def a_proposal_is_lost_in_the_replay(patch: Patch) -> None:
    committed = _LogReplay._committed

    def forgetful(self: Any, commit: Any, time: float) -> None:
        committed(self, replace(commit, changes=commit.changes[:1]), time)

    patch.setattr(_LogReplay, "_committed", forgetful)


def what_is_consumed_counts_twice(patch: Patch) -> None:
    done = RunCounters._done

    def twice(self: Any, body: ItemDone, counts: Any) -> None:
        done(self, body, counts)
        counts.consumed += body.outcome == "consumed"

    patch.setattr(RunCounters, "_done", twice)


def it_stops_before_its_time(patch: Patch) -> None:
    end_item = Dispatcher.end_item

    def early(self: Any, *given: Any, **seconds: Any) -> None:
        end_item(self, *given, **seconds)
        if self.flows.opened > 3:
            self.stopping.stop("seconds")

    patch.setattr(Dispatcher, "end_item", early)


def it_says_that_there_is_nothing_left_to_do(patch: Patch) -> None:
    end_item = Dispatcher.end_item

    def early(self: Any, *given: Any, **seconds: Any) -> None:
        end_item(self, *given, **seconds)
        if self.flows.opened > 3:
            self.stopping.stop("exhausted")

    patch.setattr(Dispatcher, "end_item", early)


def it_stops_though_there_is_budget_left(patch: Patch) -> None:
    refusal = Ledger.refusal

    def early(self: Any, estimate: Any, kept: Any = None) -> Any:
        return "proposals" if self.spent.proposals else refusal(self, estimate)

    patch.setattr(Ledger, "refusal", early)


def nobody_is_told_that_something_has_changed(patch: Patch) -> None:
    end_item, ended = Dispatcher.end_item, count(1)

    def silent(self: Any, *rest: Any) -> None:
        fire = self.changed.fire
        if next(ended) > 10:
            self.changed.fire = lambda: None
        try:
            end_item(self, *rest)
        finally:
            self.changed.fire = fire

    patch.setattr(Dispatcher, "end_item", silent)


def nothing_comes_of_any_flow_and_nobody_minds(patch: Patch) -> None:
    patch.setattr(trial, "MOST_FACTS", 300)
    patch.setattr(Stopping, "check", lambda self: None)

    async def in_vain(*_: Any) -> tuple[str, str]:
        await anyio.lowlevel.checkpoint()
        return "discarded", "in vain"

    run_stage = Dispatcher._run_stage
    patch.setattr(
        Dispatcher,
        "_run_stage",
        lambda self, stage, item, *rest: (in_vain if item.flow > 3 else run_stage)(self, stage, item, *rest),
    )


def a_veto_does_not_reach_the_archives(patch: Patch) -> None:
    apply = PoolAndArchives.commit

    def deaf(self: Any, changes: Sequence[Change], *rest: Any) -> Any:
        self._archives = () if any(isinstance(each, Vetoed) for each in changes) else self._kept
        return apply(self, changes, *rest)

    before = PoolAndArchives.__init__

    def keeping(self: Any, algorithm: Any) -> None:
        before(self, algorithm)
        self._kept = self._archives

    patch.setattr(PoolAndArchives, "__init__", keeping)
    patch.setattr(PoolAndArchives, "commit", deaf)


def a_stage_breaks(patch: Patch) -> None:
    end_item = Dispatcher.end_item

    def broken(self: Any, stage: str, item: Any, *rest: Any) -> None:
        if item.flow == 3:
            raise KeyError(item.id)
        end_item(self, stage, item, *rest)

    patch.setattr(Dispatcher, "end_item", broken)


def something_goes_on_after_the_end(patch: Patch) -> None:
    run = Engine.run
    kept: list[object] = []

    async def leaving(self: Any) -> Any:
        report = await run(self)
        kept.append(asyncio.get_running_loop().create_task(anyio.sleep(5)))
        return report

    patch.setattr(Engine, "run", leaving)


def what_is_drawn_depends_on_what_was_before(patch: Patch) -> None:
    numbers = count()
    patch.setattr(client, "call_seed", lambda seed, scope: calls.call_seed(next(numbers), scope))


SABOTAGES: Mapping[Callable[[Patch], None], tuple[Rule, int]] = {
    numbers_skip_one: ("order", 0),
    a_flow_that_ended_is_not_closed: ("flows", 0),
    an_item_is_taken_and_not_worked_on: ("progress", 0),
    an_item_is_taken_twice: ("items", 0),
    what_was_handed_on_is_handed_on_again_after_a_kill: ("crash", 17),
    more_flows_are_opened_than_may_be: ("flow limit", 0),
    a_stage_has_one_worker_too_many: ("workers", 0),
    a_pause_holds_nothing_back: ("pause", 0),
    a_veto_does_not_reach_the_archives: ("acts", 0),
    a_version_is_left_out: ("versions", 0),
    a_candidate_is_rejected_twice: ("statuses", 6),
    a_gap_is_not_seen: ("gaps", 38),
    what_is_too_old_goes_on: ("gaps", 0),
    more_calls_are_sent_than_may_be: ("call limit", 2),
    work_is_begun_without_room: ("budget", 2),
    calls_go_on_when_the_tokens_are_spent: ("budget", 13),
    what_was_spent_is_forgotten_in_a_kill: ("counters", 0),
    what_was_answered_is_asked_again: ("paid twice", 6),
    what_calls_cost_is_forgotten_in_a_kill: ("counters", 0),
    scores_are_written_down_wrong: ("pool", 0),
    a_proposal_is_lost_in_the_replay: ("pool", 3),
    what_is_consumed_counts_twice: ("counters", 0),
    it_stops_before_its_time: ("stop reason", 0),
    it_says_that_there_is_nothing_left_to_do: ("stop reason", 0),
    it_stops_though_there_is_budget_left: ("stop reason", 0),
    nobody_is_told_that_something_has_changed: ("progress", 0),
    nothing_comes_of_any_flow_and_nobody_minds: ("progress", 3),
    a_stage_breaks: ("crash", 0),
    something_goes_on_after_the_end: ("left over", 0),
    what_is_drawn_depends_on_what_was_before: ("repeatable", 0),
}
"""Each with the rule that it breaks, and a seed in whose case that is found."""
