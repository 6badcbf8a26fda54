"""The type of what JSON can hold."""

from __future__ import annotations

from typing_extensions import TypeAliasType

JSON = TypeAliasType("JSON", "bool | int | float | str | list[JSON] | dict[str, JSON] | None")
"""Its name for itself is looked up here, so a module can use a type made of it without importing it."""
