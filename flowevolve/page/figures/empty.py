"""What is raised in place of an empty figure."""

from __future__ import annotations

from flowevolve._util.errors import InputError


class EmptyFigureError(InputError):
    """A figure would be empty; ``why`` says why, in words."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"figure {name}: {why}")
        self.why = why
