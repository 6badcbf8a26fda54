"""The sender of requests: what a run tells a gateway (`flowevolve.gateway`) in headers that other servers ignore."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

RUN, SHARE, PRIORITY = "X-Flowevolve-Run", "X-Flowevolve-Share", "X-Flowevolve-Priority"

OTHERS = "others"
"""The run that requests without these headers are assigned to."""

SMALLEST_SHARE, LARGEST_SHARE, LARGEST_PRIORITY = 1e-6, 1e6, 1_000_000

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Sender:
    """One of several runs that share a gateway."""

    run: str = OTHERS
    """A name that no other run has."""
    share: float = 1.0
    """How much of the server it gets, in relation to the shares of the other runs."""
    priority: int = 0
    """Runs with a lower number go first; the others get what these leave."""

    @classmethod
    def new(cls, share: float, priority: int) -> Sender:
        """A run with a new, random name, which reveals nothing about it."""
        return cls(f"run-{uuid4().hex[:12]}", share, priority)

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Sender:
        """The sender of a request with these headers.

        Raises:
            ValueError: if a header has an invalid value.
        """
        run = headers.get(RUN, OTHERS)
        if not _NAME.fullmatch(run):
            raise ValueError(f"{RUN} must be up to 64 letters, digits, dots, dashes and underscores")
        share = _number(headers, SHARE, 1.0)
        if not SMALLEST_SHARE <= share <= LARGEST_SHARE:
            raise ValueError(
                f"{SHARE} must be at least {SMALLEST_SHARE:g} and at most {LARGEST_SHARE:g}, and is {share:g}"
            )
        priority = _number(headers, PRIORITY, 0.0)
        if not abs(priority) <= LARGEST_PRIORITY or priority != int(priority):
            raise ValueError(
                f"{PRIORITY} must be a whole number from {-LARGEST_PRIORITY:,} to {LARGEST_PRIORITY:,}, and is "
                f"{priority:g}"
            )
        return cls(run, share, int(priority))

    def headers(self) -> dict[str, str]:
        """The headers that describe this sender."""
        return {RUN: self.run, SHARE: f"{self.share:g}", PRIORITY: str(self.priority)}


def _number(headers: Mapping[str, str], name: str, otherwise: float) -> float:
    try:
        return float(headers.get(name, otherwise))
    except ValueError:
        raise ValueError(f"{name} must be a number, and is {headers[name][:40]!r}") from None
