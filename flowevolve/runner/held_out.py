"""Scoring artifacts on the test split, which evolution never sees, once a run has ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve._util.intervals import mean_interval
from flowevolve._util.logger import logger
from flowevolve._util.tasks import run_all, stray_cancellation_is_an_error
from flowevolve._util.user_warnings import warn_user
from flowevolve.core.calls import HELD_OUT, CallScope
from flowevolve.core.context import ChatFunction, ScopedModel
from flowevolve.core.item_ids import ItemId, WorkPart
from flowevolve.core.model import ChatReply, Message
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Example, Measured, Task
from flowevolve.engine.recovery.recorded_replies import RecordedReplies
from flowevolve.engine.recovery.recovery import History
from flowevolve.journal.run_directory import read_result
from flowevolve.llm.client.client import LLMClient
from flowevolve.runner.interrupts import cut_off_alone
from flowevolve.runner.result_parts import HeldOut
from flowevolve.tasks.identity import identity_of_test
from flowevolve.tasks.rollout_checks import check_rollout


async def hold_out_or_leave(
    task: Task, seed: Candidate, best: Candidate, client: LLMClient, history: History | None
) -> HeldOut | None:
    """Like `hold_out`, for a run that can't be resumed: after an error or an interrupt its result has no test scores,
    and there is a warning.
    """
    left = "the test was cut off"
    with cut_off_alone():
        try:
            return await hold_out(task, seed, best, client, history)
        except FlowevolveError as error:
            left = f"the test failed: {error}"
    warn_user(f"the result has no held_out scores, because {left}")
    return None


async def hold_out(
    task: Task,
    seed: Candidate,
    best: Candidate,
    client: LLMClient,
    history: History | None,
    earlier: HeldOut | None = None,
) -> HeldOut:
    """Score seed and best on the test split. Calls that were answered before the run was interrupted are not made
    again. If ``earlier`` is of the same test and nothing failed in it, it is returned.
    """
    tested = identity_of_test(task, [seed.artifact, best.artifact])
    if earlier is not None and tested is not None and earlier.tested == tested and not earlier.failed:
        return earlier
    candidates = [seed] if best.id == seed.id else [seed, best]
    recorded_replies = RecordedReplies()
    if history is not None:
        works = [(HELD_OUT, candidate.id) for candidate in candidates]
        recorded_replies = RecordedReplies(await in_thread(lambda: list(history.calls(works))))
    found = await score_held_out(task, candidates, _plain_chat(client, recorded_replies))
    scores = [[each.score for each in of_candidate] for of_candidate in found]
    of_seed, of_best = scores[0], scores[-1]
    gains = [after - before for before, after in zip(of_seed, of_best, strict=True)]
    failed = sum(each.failed for of_candidate in found for each in of_candidate)
    intervals = mean_interval(of_best), mean_interval(gains)
    return HeldOut(len(of_seed), fmean(of_seed), fmean(of_best), *intervals, failed, tested)


def earlier_test(directory: Path) -> HeldOut | None:
    """What the test at the end of a run came to, according to its result; None if it has no result, or no test."""
    try:
        table = read_result(directory).get("held_out")
    except InputError:
        return None
    return HeldOut.read(table) if isinstance(table, dict) else None


def _plain_chat(client: LLMClient, recorded_replies: RecordedReplies) -> ChatFunction:
    """A function for calls that belong to no stage. It uses recorded replies where there are any."""

    async def chat(
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        known = await recorded_replies.reply(scope, messages)
        if known is not None:
            return known
        return await client.chat(role, messages, scope=scope, max_tokens=max_tokens, temperature=temperature)

    return chat


class Tested(NamedTuple):
    """One rollout of the test. If it failed, it has the task's worst score, or the one that the metric gave the
    failure.
    """

    score: float
    failure: str | None
    """Why it failed; None if it did not."""

    @property
    def failed(self) -> bool:
        return self.failure is not None


async def score_held_out(task: Task, candidates: Sequence[Candidate], chat: ChatFunction) -> list[Sequence[Tested]]:
    """Each candidate's scores on the test split, in its order.

    A rollout has failed if it got no answer, the task or its metric failed on the example, or the score is not a finite
    number. How many have failed is logged, with the first of them.
    """
    jobs = [partial(_score, task, candidate, example, chat) for candidate in candidates for example in task.data.test]
    scores = await run_all(jobs)
    size = len(task.data.test)
    _log_failures(scores, [(candidate.id, example.id) for candidate in candidates for example in task.data.test])
    return [scores[start : start + size] for start in range(0, len(scores), size)]


async def _score(task: Task, candidate: Candidate, example: Example, chat: ChatFunction) -> Tested:
    scope = CallScope(HELD_OUT, str(WorkPart(ItemId(candidate.id), example.id)), candidate.id, priority=0, index=0)
    try:
        async with stray_cancellation_is_an_error():
            made = await task.rollout(candidate.artifact, example, ScopedModel(chat, "task", scope))
        score = check_rollout(made, example, task).score
        value, failed = score.value, None if isfinite(score.value) else f"its score is {score.value}"
        if not isinstance(task, Measured):  # otherwise, what it measures has failed
            failed = failed or score.failure
    except FlowevolveError:
        raise
    except Exception as error:  # noqa: BLE001 - no answer, or a user's task code, which may raise anything, as in the run
        value, failed = nan, f"{type(error).__name__}: {error}"
    if not isfinite(value):
        value = task.worst if isinstance(task, Measured) else 0.0
    return Tested(value, failed)


def _log_failures(scores: Sequence[Tested], places: Sequence[tuple[str, str]]) -> None:
    """Log how many rollouts have failed, and of the first the candidate, the example and the reason."""
    failed = [(place, each.failure) for place, each in zip(places, scores, strict=True) if each.failed]
    if failed:
        (candidate, example), reason = failed[0]
        logger().warning(
            "held_out.failed",
            failed=len(failed),
            rollouts=len(scores),
            candidate=candidate,
            example=example,
            reason=reason,
        )
