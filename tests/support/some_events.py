"""Events of which a test says only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Literal, get_args, get_origin, get_type_hints

from flowevolve._util.json_types import JSON
from flowevolve.core.budget import Cost
from flowevolve.core.event_body import KINDS, Plain
from flowevolve.core.events import Event
from flowevolve.core.logged_changes import LoggedAdd, LoggedAnnotate, LoggedMove


def some_event(seq: int, kind: str, **said: JSON) -> Event:
    """An event at ``seq`` seconds; fields that are not given have values that mean nothing."""
    return Event(seq, float(seq), kind, some_data(kind, **said))


def some_data(kind: str, **said: JSON) -> dict[str, JSON]:
    return {**_filled(KINDS[kind]), **said} if kind in KINDS else said


def some_changes(**said: JSON) -> list[JSON]:
    """The changes of a commit that makes one: what it does is told from the first name."""
    kinds: dict[str, type[Plain]] = {"add": LoggedAdd, "move": LoggedMove, "annotate": LoggedAnnotate}
    return [{**_filled(kinds[next(iter(said))]), **said}]


def _filled(plain: type[Plain]) -> dict[str, JSON]:
    hints = get_type_hints(plain)
    return {each.name: _nothing(hints[each.name]) for each in fields(plain) if each.default is MISSING}


def _nothing(hint: object) -> JSON:
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is Literal:
        return str(get_args(hint)[0])
    kinds: dict[object, JSON] = {int: 0, int | float: 0, bool: False, Cost: {}, tuple: [], Mapping: {}}
    return next((kinds[each] for each in (hint, get_origin(hint)) if each in kinds), "")
