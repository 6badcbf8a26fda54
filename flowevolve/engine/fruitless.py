"""Runs that produce nothing: this is reported after the first flows, and the run ends if it can't get better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from flowevolve._util.errors import FlowevolveError, FruitlessError, TaskFailedError
from flowevolve.core.discard_reasons import NO_TRACE, UNCHANGED, UNREADABLE
from flowevolve.core.reply_reading import Reason
from flowevolve.engine.counters import ReplyCounts

FIRST = 10
"""After this many pieces of work, all of them in vain, the run reports it."""
MOST_IN_VAIN = 30
"""After this many, by default, the run ends."""
_ROUNDS = 2
"""How often each component has to be found without a trace before the run ends."""
_SHOWN = 3
_CHARACTERS = 300
_MENDS = {
    UNCHANGED: "The model gives back what it was given: take one that writes better, or a higher temperature",
    UNREADABLE: "Replies don't have the form that is asked for: take a model that keeps to it",
}


def top_reasons(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons with their counts, in words."""
    most = sorted(reasons.items(), key=lambda each: -each[1])[:_SHOWN]
    return ", ".join(f"{count} × {' '.join(reason.split())[:_CHARACTERS]}" for reason, count in most)


def fruitless(
    reasons: Mapping[str, int], *, components: int, most: int, replies: ReplyCounts
) -> FlowevolveError | None:
    """The error that ends a run in which everything was in vain for these reasons; None while it may still get better.

    ``components`` is how many components the artifact has, ``most`` the number of pieces of work after which the run
    ends in any case, and ``replies`` counts the replies that could not be read.
    """
    count = sum(reasons.values())
    if count >= max(FIRST, _ROUNDS * components) and all(reason.startswith(NO_TRACE) for reason in reasons):
        return TaskFailedError(
            f"the task's rollouts name no component that is to evolve ({top_reasons(reasons)}); name it in each: "
            'Rollout(..., calls=(Call("prompt", {"input": ...}, output),))'
        )
    if count < most:
        return None
    top = max(reasons, key=lambda reason: reasons[reason])
    mend = _mend_of_cut(replies) if top == UNREADABLE else None
    mend = mend or _MENDS.get(top)
    said = [top_reasons(reasons), *([mend] if mend else []), *_example(replies.examples)]
    return FruitlessError(f"nothing came of the first {count} flows: {'. '.join(said)}")


def _mend_of_cut(replies: ReplyCounts) -> str | None:
    """How to mend replies that break off, for the role with the most unreadable replies; None if fewer than half of
    these broke off.
    """
    role, counts = max(replies.unreadable.items(), key=lambda each: each[1].total(), default=("", Counter[str]()))
    if not counts or 2 * counts[Reason.INCOMPLETE] < counts.total():
        return None
    return (
        f"Replies of {role} break off: if the limit of tokens is the cause, raise llm.roles.{role}.max_tokens, or the "
        "longest context of the server"
    )


def _example(examples: Mapping[str, str]) -> list[str]:
    said = next(iter(examples.values()), None)
    return [] if said is None else [f"What was wrong with one of the replies: {' '.join(said.split())[:_CHARACTERS]}"]
