"""Reasons for discarding items that mean the same in every algorithm."""

from __future__ import annotations

UNCHANGED = "unchanged"
"""The new text is the same as the old one, so that there is nothing to propose."""
UNREADABLE = "unparsable reply"
NO_TRACE = "no trace of component"
"""The beginning of the reason if no rollout names the component that is to be rewritten."""
ROLLOUTS_FAILED = "every rollout failed"
"""The beginning of the reason if no rollout worked, so that there is nothing to learn from."""
OVERTAKEN = "another edit was there first"
"""An edit made at the same time did the same, or did better on the examples that this one was made for."""
PERFECT = "perfect minibatch"
"""Nothing is written because the minibatch leaves nothing to improve."""
NO_REPLY = "llm:"
"""The beginning of the reason if a call failed for good."""


def in_vain(reason: str) -> bool:
    """Whether the reason is a fault that may well recur, so that the run pays for work and never gets a proposal."""
    return reason in (UNCHANGED, UNREADABLE) or reason.startswith((NO_TRACE, ROLLOUTS_FAILED, NO_REPLY))
