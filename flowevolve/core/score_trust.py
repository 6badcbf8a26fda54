"""Whether the scores of a run can be forged by the programs that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TrustKind = Literal["isolated", "shared"]
"""``isolated``: what scores a program is out of its reach; ``shared``: the program could forge its own score."""


@dataclass(frozen=True, slots=True)
class ScoreTrust:
    kind: TrustKind
    why: str = ""
    """Why what scores is not out of reach."""

    @classmethod
    def of(cls, kind: object, why: object) -> ScoreTrust | None:
        """What was written of it; None if nothing was, as in older files."""
        if kind not in ("isolated", "shared"):
            return None
        return cls("isolated" if kind == "isolated" else "shared", str(why or ""))

    def __str__(self) -> str:
        if self.kind == "isolated":
            return "isolated: programs can't reach what scores them"
        return f"shared: a program could forge its own score, as {self.why}"
