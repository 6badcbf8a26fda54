"""A library that knows gepa alone, and looks its function up when it is called, in each of the ways there are."""

from __future__ import annotations

from typing import Any

import gepa


def by_attribute(**arguments: Any) -> Any:
    return gepa.optimize(**arguments)  # type: ignore[attr-defined]  # gepa does not say that it exports it


def by_import(**arguments: Any) -> Any:
    from gepa import optimize  # type: ignore[attr-defined]  # noqa: PLC0415

    return optimize(**arguments)


def by_import_from_its_module(**arguments: Any) -> Any:
    from gepa.api import optimize  # noqa: PLC0415

    return optimize(**arguments)


WAYS = [by_attribute, by_import, by_import_from_its_module]
