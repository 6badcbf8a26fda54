"""Spot machines while there are any; on demand once time is short."""

from typing import Any

# EVOLVE-BLOCK-START
WAIT_HOURS = 3.0
"""Hours to spare that waiting must leave."""
STAY_HOURS = 0.0
"""Hours to spare below which a machine on demand is kept, also when there is a spot machine."""


def hours_to_spare(state: dict[str, Any]) -> float:
    """How long the job could still wait if it then ran without a break."""
    spare: float = state["deadline"] - state["elapsed"] - state["left"] - state["restart"]
    return spare / 3600


def decide(state: dict[str, Any]) -> str:
    spare = hours_to_spare(state)
    if state["running"] == "on_demand" and spare < STAY_HOURS:
        return "on_demand"
    if state["available"]:
        return "spot"
    return "wait" if spare > WAIT_HOURS else "on_demand"


# EVOLVE-BLOCK-END
