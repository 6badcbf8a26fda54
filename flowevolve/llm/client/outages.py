"""Whether a server that has answered is out of order: it fails at what it answered before, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from flowevolve._util.clock import now
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.model import LLMError, R, RejectedError, ServerError, server_failed
from flowevolve.llm.client.pending_call import PendingCall, PendingChat

MAX_FAILED_IN_A_ROW = 10
"""After so many calls in a row that the server rejected or made fail, for a model that it answered before, the request
that was answered last is sent again. If it fails as they do the server is down; else the fault is with those requests.
"""
Attempt = Callable[[PendingCall[R]], Awaitable[R]]
"""Makes one attempt at a call, which raises `LLMError` where that fails."""


def may_be_broken(call: PendingCall[R], error: LLMError) -> bool:
    """Whether a call failed in a way in which all calls do where the server is out of order: for a model that has
    answered others it has an error of its own, or rejects requests. Embeddings may be rejected, as the work goes on
    without; and what has no status was rejected by no server, but by a function or by a limit of ours.
    """
    if call.model.last is None:
        return False
    match error:
        case ServerError():
            return server_failed(error)
        case RejectedError():
            return isinstance(call, PendingChat) and error.status is not None
        case _:
            return False


async def is_down(call: PendingCall[R], attempt: Attempt[R]) -> bool:
    """Whether the server is out of order for this call's model, as it fails at what it answered last, too.

    That is sent again after so many failures in a row, once at a time: calls that fail meanwhile go by its outcome,
    and so do those whose attempts were under way.
    """
    model = call.model
    if model.failed_in_a_row >= MAX_FAILED_IN_A_ROW and call.repeats_before == model.repeats:
        async with model.repeating:
            if model.failed_in_a_row >= MAX_FAILED_IN_A_ROW and call.repeats_before == model.repeats:
                await _repeat_last(call, attempt)
    return model.is_down


async def _repeat_last(failed: PendingCall[R], attempt: Attempt[R]) -> None:
    """Send the last answered request of this call's model again, and learn whether the server is down."""
    model = failed.model
    fails: bool | None = None
    with suppress(OverBudgetError):  # then it remains open, too
        fails = await _fails_again(failed, attempt)
    model.repeats += 1
    if fails:
        model.is_down = model.failed_in_a_row >= MAX_FAILED_IN_A_ROW  # unless another call was answered meanwhile
    elif fails is not None:
        failed.backend.note_answer(now())
        model.note_answer(now())
    elif not model.is_down:
        model.failed_in_a_row = 0


async def _fails_again(failed: PendingCall[R], attempt: Attempt[R]) -> bool | None:
    """Whether the server rejects the request or fails at it once more; None if that remains open, as it is busy,
    slow or can't be reached. What is to be paid for it is added to the call's own failures.

    Raises:
        OverBudgetError: if the payer has nothing left.
    """
    model = failed.model
    if model.last is None:
        return None
    in_full = not model.takes_short
    try:
        reply = await attempt(model.last.again(failed, in_full=in_full))
    except LLMError as error:
        failed.failed_usage += error.usage
        if not may_be_broken(failed, error):
            return False if isinstance(error, ServerError) else None
        if in_full:
            return True
        model.takes_short = False  # as of models that can't do with so few tokens
        return await _fails_again(failed, attempt)
    failed.failed_usage += reply.usage
    return False
