"""Detects a server that was working and is now out of order: it fails even at a request that it answered before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from flowevolve._util.clock import now
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.model import LLMError, R, RejectedError, ServerError, server_failed
from flowevolve.llm.client.pending_call import PendingCall, PendingChat

MAX_FAILED_IN_A_ROW = 10
"""After this many calls in a row that the server rejected or failed at, for a model that it answered before, the last
answered request is sent again. If it fails, too, the server is down; otherwise the fault is with the failed requests.
"""
Attempt = Callable[[PendingCall[R]], Awaitable[R]]
"""Makes one attempt at a call; raises `LLMError` if it fails."""


def may_be_broken(call: PendingCall[R], error: LLMError) -> bool:
    """Whether a call failed in a way in which every call fails at a server that is out of order: with an error of the
    server or a rejection, for a model that has answered other calls. Rejected embeddings don't count, as the run can do
    without them. Nor do rejections without a status: they come from a function or one of our limits, not from a server.
    """
    if call.answers.last is None:
        return False
    match error:
        case ServerError():
            return server_failed(error)
        case RejectedError():
            return isinstance(call, PendingChat) and error.status is not None
        case _:
            return False


async def is_down(call: PendingCall[R], attempt: Attempt[R]) -> bool:
    """Whether the server is out of order for this call's model: it fails even at the request that it answered last.

    That request is sent again after `MAX_FAILED_IN_A_ROW` failures, by one call at a time. Calls that fail meanwhile,
    or whose attempts were already under way, use its outcome.
    """
    answers = call.answers
    if answers.failed_in_a_row >= MAX_FAILED_IN_A_ROW and call.repeats_before == answers.repeats:
        async with answers.repeating:
            if answers.failed_in_a_row >= MAX_FAILED_IN_A_ROW and call.repeats_before == answers.repeats:
                await _repeat_last(call, attempt)
    return answers.is_down


async def _repeat_last(failed: PendingCall[R], attempt: Attempt[R]) -> None:
    """Send the last answered request of this call's model again, and learn whether the server is down."""
    answers = failed.answers
    fails: bool | None = None
    with suppress(OverBudgetError):  # then the question remains open, too
        fails = await _fails_again(failed, attempt)
    answers.repeats += 1
    if fails:
        answers.is_down = answers.failed_in_a_row >= MAX_FAILED_IN_A_ROW  # unless another call was answered meanwhile
    elif fails is not None:
        failed.backend.note_answer(now())
        answers.note_answer(now())
    elif not answers.is_down:
        answers.failed_in_a_row = 0


async def _fails_again(failed: PendingCall[R], attempt: Attempt[R]) -> bool | None:
    """Whether the server now rejects or fails at the request that it answered last; None if that remains open, as it is
    busy, slow or can't be reached. The tokens used are added to ``failed_usage`` of the call ``failed``.

    Raises:
        OverBudgetError: if the payer has nothing left.
    """
    answers = failed.answers
    if answers.last is None:
        return None
    in_full = not answers.takes_short
    try:
        reply = await attempt(answers.last.again(failed, in_full=in_full))
    except LLMError as error:
        failed.failed_usage += error.usage
        if not may_be_broken(failed, error):
            return False if isinstance(error, ServerError) else None
        if in_full:
            return True
        answers.takes_short = False  # some models can't work with so few tokens
        return await _fails_again(failed, attempt)
    failed.failed_usage += reply.usage
    return False
