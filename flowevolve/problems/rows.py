"""Reads rows of real data from the file that a problem is given with the setting ``data``."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from flowevolve._util.errors import InputError
from flowevolve._util.registry import describe_validation
from flowevolve.tasks.loaders import load_rows


class Row(BaseModel):
    """The base class for the model of a row. Fields of the data that the model does not have are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


R = TypeVar("R", bound=Row)


def read_rows(path: Path, model: type[R]) -> list[R]:
    """Read all rows of a file as instances of ``model``.

    Raises:
        InputError: naming the file, the row and what is wrong with it.
    """
    rows: list[R] = []
    for place, row in enumerate(load_rows(path), 1):
        try:
            rows.append(model.model_validate(row))
        except ValidationError as error:
            raise InputError(describe_validation(error, f"{path}: row {place}")) from None
    return rows
