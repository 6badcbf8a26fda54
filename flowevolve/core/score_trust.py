"""Whether the programs of a run could forge their own scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TrustKind = Literal["isolated", "shared"]
"""``isolated``: a program can't reach what scores it; ``shared``: the program could forge its own score."""


@dataclass(frozen=True, slots=True)
class ScoreTrust:
    kind: TrustKind
    why: str = ""
    """Why a program could reach what scores it."""

    @classmethod
    def of(cls, kind: object, why: object) -> ScoreTrust | None:
        """Read what was recorded; None if nothing was, as in older files."""
        if kind not in ("isolated", "shared"):
            return None
        return cls("isolated" if kind == "isolated" else "shared", str(why or ""))

    def __str__(self) -> str:
        if self.kind == "isolated":
            return "isolated: programs can't reach what scores them"
        return f"shared: a program could forge its own score, as {self.why}"
