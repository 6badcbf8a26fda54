"""How a run begins that validates edits together.

At first nothing is known of what edits are worth, and all that is under way at a time is a bet on the text that the run
begins with. So fewer are made side by side and validated, until some validations have ended: still fewer where the
server takes few calls, as flows that wait for each other there save no time.
"""

from __future__ import annotations

VALIDATIONS = 3
"""The opening is over when so many validations have ended: that of the start, and those of two groups."""
SHARE = 0.5
"""Open flows, and edits that are waited for, are so many times what they are after the opening."""

CALLS = 4
"""In the opening, there are as many flows for so many calls that the server takes as validations have ended."""


def is_opening(validated: int) -> bool:
    """Whether a run of which so many validations have ended is still in its opening."""
    return validated < VALIDATIONS
