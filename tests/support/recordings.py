"""Made-up recordings of what a method asked of a server."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.methods.recording import Role, Span
from bench._lib.methods.runs import Run

SECONDS = 100.0


def span(begun: float, ended: float, tokens: int | None = 10, role: Role = "rollout") -> Span:
    return Span(begun, ended, role, 100, None, tokens)


def run(
    *spans: Span, method: str = "stream", start: float = 0.0, accepted: Sequence[tuple[float, float]] = ((0.0, 0.5),)
) -> Run:
    return Run(method, "aime", start, start + SECONDS, spans, tuple(accepted), (0.0,), 1.0, 2.0, speed=10.0)
