"""What the writer of a program says about it."""

from __future__ import annotations

from pydantic import Field

from flowevolve.core.record import Attributes


class Named(Attributes):
    """The writer's name for the change to a program, and its idea, in a line each; empty where it gave none."""

    name: str = Field(default="", alias="edit.name")
    idea: str = Field(default="", alias="edit.idea")
