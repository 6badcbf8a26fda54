"""A number that goes up and down, and its mean over time."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class Gauge:
    """A whole number, at first 0, with its integral over time and its mean. Inside a ``with`` block it is one higher.

    Both are over the time since ``began``, by default since now, or since the last `restart`.
    """

    __slots__ = ("_began", "_changed", "_integral", "_now", "value")

    def __init__(self, now: Callable[[], float], began: float | None = None) -> None:
        self._now = now
        self._began = self._changed = now() if began is None else began
        self._integral = 0.0
        self.value = 0

    def add(self, by: int) -> None:
        now = self._now()
        self._integral += self.value * (now - self._changed)
        self._changed = now
        self.value += by

    def __enter__(self) -> None:
        self.add(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.add(-1)

    def integral(self) -> float:
        self.add(0)
        return self._integral

    def mean(self) -> float:
        """The mean up to now or, if no time has passed, the value."""
        total, lasted = self.integral(), self._changed - self._began
        return total / lasted if lasted > 0 else float(self.value)

    def take_mean(self) -> float:
        """The mean up to now; the next one begins here."""
        mean = self.mean()
        self.restart()
        return mean

    def restart(self) -> None:
        """Begin the integral and the mean anew; the value stays."""
        self.add(0)
        self._began, self._integral = self._changed, 0.0
