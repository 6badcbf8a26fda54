"""Reasons for which items are discarded that mean the same in every algorithm."""

from __future__ import annotations

UNCHANGED = "unchanged"
"""What was written is what there was before, so that there is nothing to propose."""
UNREADABLE = "unparsable reply"
NO_TRACE = "no trace of component"
"""How the reason begins where no rollout names the component that is to be written anew."""
ROLLOUTS_FAILED = "every rollout failed"
"""How the reason begins where there is nothing to learn from, as no rollout worked."""
OVERTAKEN = "another edit was there first"
"""An edit was made beside another one that did the same, or that did better on what this one was made for."""
PERFECT = "perfect minibatch"
"""The reason for which nothing is written where a minibatch leaves nothing to improve."""
NO_REPLY = "llm:"
"""How the reason begins where a call failed for good."""


def in_vain(reason: str) -> bool:
    """Whether the work was paid for and something is at fault, so that as it is nothing may ever come of it."""
    return reason in (UNCHANGED, UNREADABLE) or reason.startswith((NO_TRACE, ROLLOUTS_FAILED, NO_REPLY))
