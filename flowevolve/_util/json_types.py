"""The type of what JSON can hold."""

from __future__ import annotations

from typing_extensions import TypeAliasType

JSON = TypeAliasType("JSON", "bool | int | float | str | list[JSON] | dict[str, JSON] | None")
"""The alias's reference to itself is resolved in this module, so other modules can use types built from it without
importing it.
"""
