"""How many requests were in flight, and how many tokens were written a second, over the time of a run."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.page.tables.work import CallRow


class Rates:
    """Means over steps of time, all equally long, from 0 to ``seconds``. A reply's tokens are spread evenly over the
    time in which its request was in flight; replies of the response cache are not counted.
    """

    def __init__(self, seconds: float, steps: int) -> None:
        self._steps = steps
        self.width = seconds / steps if seconds > 0 else 1.0
        """The length of a step, in seconds."""
        self.in_flight: dict[str, list[float]] = {}
        """By role, the requests in flight in each step."""
        self.tokens = self._zeros()
        """Completion tokens a second in each step."""

    def take(self, call: CallRow) -> None:
        if call.outcome == "cached":
            return
        in_flight = self.in_flight.setdefault(call.role, self._zeros())
        begun, ended = max(call.begun, 0.0), min(call.ended, self.width * self._steps)
        whole = call.ended - call.begun
        rate = (call.completion_tokens or 0) / whole if whole > 0 else 0.0
        for step in range(int(begun / self.width), min(int(ended / self.width) + 1, self._steps)):
            inside = min(ended, (step + 1) * self.width) - max(begun, step * self.width)
            in_flight[step] += inside / self.width
            self.tokens[step] += rate * inside / self.width

    def times(self) -> Sequence[float]:
        """When each step begins, in seconds."""
        return [self.width * step for step in range(self._steps)]

    def _zeros(self) -> list[float]:
        return [0.0] * self._steps
