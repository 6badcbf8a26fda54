"""What the sections of a configuration have in common."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A closed table: an unknown key is an error. What checks it is built at the first use, not at import."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class OpenSettings(BaseModel):
    """A table that also holds the settings of what it names."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @property
    def settings(self) -> Mapping[str, object]:
        return dict(self.model_extra or {})
