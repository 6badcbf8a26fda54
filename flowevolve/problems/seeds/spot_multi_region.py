"""Spot machines where there are any, staying if possible; on demand once time is short."""

from typing import Any

# EVOLVE-BLOCK-START
WAIT_HOURS = 3.0
"""Hours to spare that waiting must leave."""


def hours_to_spare(state: dict[str, Any]) -> float:
    """How long the job could still wait if it then ran without a break."""
    spare: float = state["deadline"] - state["elapsed"] - state["left"] - state["restart"]
    return spare / 3600


def decide(state: dict[str, Any]) -> tuple[str, int]:
    here: int = state["region"]
    if state["available"][here]:
        return "spot", here
    for region, available in enumerate(state["available"]):
        if available:
            return "spot", region
    return ("wait" if hours_to_spare(state) > WAIT_HOURS else "on_demand"), here


# EVOLVE-BLOCK-END
