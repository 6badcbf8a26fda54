"""Rate limits read from the headers of an answer, under OpenAI's names or Anthropic's.

OpenAI and compatible servers: ``x-ratelimit-limit-requests``, ``-remaining-requests``, ``-reset-requests``, the
last as a duration such as ``6m0s``; the same for ``-tokens`` (platform.openai.com/docs/guides/rate-limits).
Anthropic: ``anthropic-ratelimit-requests-limit``, ``-remaining``, ``-reset``, the last as a time of day, which is
read by the server's own clock (``Date``); the same for ``-tokens-`` (docs.anthropic.com/en/api/rate-limits).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Literal

LimitKind = Literal["requests", "tokens"]
LIMIT_KINDS: tuple[LimitKind, ...] = ("requests", "tokens")

_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")


@dataclass(frozen=True, slots=True)
class Allowance:
    """The state of a limit: what remains of it, and in how many seconds after the answer it is full again."""

    limit: float
    remaining: float
    reset_seconds: float

    @property
    def per_second(self) -> float | None:
        """The refill per second: the used part is back at the reset. None where that can't be computed."""
        used = self.limit - self.remaining
        return used / self.reset_seconds if used > 0 and self.reset_seconds > 0 else None


def allowances(headers: Mapping[str, str]) -> dict[LimitKind, Allowance]:
    """The limits by kind; one that is missing or can't be read is left out."""
    found: dict[LimitKind, Allowance] = {}
    for kind in LIMIT_KINDS:
        allowance = _openai(headers, kind) or _anthropic(headers, kind)
        if allowance is not None:
            found[kind] = allowance
    return found


def _openai(headers: Mapping[str, str], kind: LimitKind) -> Allowance | None:
    limit = headers.get(f"x-ratelimit-limit-{kind}")
    if limit is None:
        return None
    reset = _duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
    return _allowance(limit, headers.get(f"x-ratelimit-remaining-{kind}", ""), reset)


def _anthropic(headers: Mapping[str, str], kind: LimitKind) -> Allowance | None:
    limit = headers.get(f"anthropic-ratelimit-{kind}-limit")
    if limit is None:
        return None
    reset = _until(headers.get(f"anthropic-ratelimit-{kind}-reset", ""), headers.get("date", ""))
    return _allowance(limit, headers.get(f"anthropic-ratelimit-{kind}-remaining", ""), reset)


def _allowance(limit: str, remaining: str, reset_seconds: float | None) -> Allowance | None:
    try:
        most, left = float(limit), float(remaining)
    except ValueError:
        return None
    if reset_seconds is None or not (isfinite(most) and isfinite(left) and most > 0):
        return None
    return Allowance(most, max(0.0, min(left, most)), max(0.0, reset_seconds))


def _duration(text: str) -> float | None:
    """Seconds in ``1h2m3.5s``, ``17ms`` or, without a unit, ``30``; None if it is no duration."""
    if text.isdecimal():
        return float(text)
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _until(moment: str, date: str) -> float | None:
    try:
        return (datetime.fromisoformat(moment) - parsedate_to_datetime(date)).total_seconds()
    except (ValueError, TypeError, OverflowError):  # no time, or only one of the two has a time zone
        return None
