"""Checks how large a problem is to be."""

from __future__ import annotations

from flowevolve._util.errors import InputError


def check_least(least: int, **settings: int) -> None:
    """Raises: InputError naming the first of a task's settings that is less than ``least``."""
    for name, value in settings.items():
        if value < least:
            raise InputError(f"task.{name} is {value}, but has to be at least {least}")
