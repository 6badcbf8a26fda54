"""What the writer of a program says of it."""

from __future__ import annotations

from pydantic import Field

from flowevolve.core.record import Attributes


class Named(Attributes):
    """What the writer of a program calls its change, and says of it, in a line each; empty where it said nothing."""

    name: str = Field(default="", alias="edit.name")
    idea: str = Field(default="", alias="edit.idea")
