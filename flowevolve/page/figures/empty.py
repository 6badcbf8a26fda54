"""What is raised in place of an empty figure."""

from __future__ import annotations

from flowevolve._util.errors import InputError


class EmptyFigureError(InputError):
    """There is nothing to be seen in a figure; ``why`` says it in words."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"figure {name}: {why}")
        self.why = why
