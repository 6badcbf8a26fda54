"""The shipped problems by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve.programs.problem import Problem

SHIPPED_PROBLEMS: Mapping[str, Callable[..., Problem]] = {}
