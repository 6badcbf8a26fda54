"""The opening of a run that validates edits together.

At first, nothing is known about what edits are worth, and everything under way is a bet on the text with which the run
begins. So fewer edits are made concurrently and validated until some validations have ended, and still fewer if the
server takes few calls, because flows that wait for each other there save no time.
"""

from __future__ import annotations

VALIDATIONS = 3
"""The opening is over when this many validations have ended: that of the start, and those of two groups."""
SHARE = 0.5
"""In the opening, open flows and the spending at which edits leave are this share of what they are later."""

CALLS = 4
"""In the opening, each validation that has ended allows one flow per this many calls that the server takes."""


def is_opening(validated: int) -> bool:
    """Whether a run in which this many validations have ended is still in its opening."""
    return validated < VALIDATIONS
