"""The base classes of the tables of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A table in which an unknown key is an error. Its validator is built at the first use, not at import."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class OpenSettings(BaseModel):
    """A table that names something, such as a policy, and also holds the settings of that."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @property
    def settings(self) -> Mapping[str, object]:
        return dict(self.model_extra or {})
