"""What the sections of a configuration have in common."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A closed table: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenSection(BaseModel):
    """A table that also holds the settings of what it names."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @property
    def settings(self) -> Mapping[str, object]:
        return dict(self.model_extra or {})
