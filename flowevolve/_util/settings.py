"""The base classes of the tables of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from flowevolve._util.errors import InputError
from flowevolve._util.registry import describe_validation


class _Told(BaseModel):
    """A model whose constructor says in one line what is wrong with its arguments.

    Errors in a validated table are reported by the code that reads it, which knows where the table is.
    """

    def __init__(self, /, *given: object, **settings: object) -> None:
        """Raises: InputError naming the setting that is wrong."""
        name = type(self).__name__
        if given:
            first = next(iter(type(self).model_fields), "name")
            raise InputError(f"{name} takes settings by name, such as {name}({first}=…), but was given {given[0]!r}")
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise InputError(f"{name}: {self._describe(error)}") from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # pydantic's mark: don't call this for tables

    @classmethod
    def _describe(cls, error: ValidationError) -> str:
        """What is wrong with the arguments, in one line."""
        return describe_validation(error, known=list(cls.model_fields))


class Settings(_Told):
    """A table in which an unknown key is an error. Its validator is built at first use, not at import."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class OpenSettings(_Told):
    """A table that names an object, such as a policy, and also holds that object's settings."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @property
    def settings(self) -> Mapping[str, object]:
        return dict(self.model_extra or {})
