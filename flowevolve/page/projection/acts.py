"""What users did to a run that they watched."""

from __future__ import annotations

from collections.abc import Iterator

from flowevolve.core.acts import Act, Approve, Comment, Inject, Pause, RaiseBudget, Veto
from flowevolve.core.event_kinds import RunSteered
from flowevolve.core.events import Event
from flowevolve.page.tables.run import ActRow


def acts(event: Event) -> Iterator[ActRow]:
    """The row of an event that is an act."""
    match event.body:
        case RunSteered(by=by, act=act, refused=refused):
            about, is_example = _about(act)
            yield ActRow(event.seq, event.time, by, act.act, about, is_example, _text(act), refused)
        case _:
            pass


def _about(act: Act) -> tuple[str | None, bool]:
    """The id that an act is about, and whether it is that of an example."""
    match act:
        case Veto(candidate=name) | Approve(candidate=name) | Inject(parent=name):
            return name, False
        case Comment(candidate=None, example=example):
            return example, True
        case Comment(candidate=candidate):
            return candidate, False
        case _:
            return None, False


def _text(act: Act) -> str:
    match act:
        case Comment(text=text):
            return text
        case RaiseBudget(limits=limits):
            return ", ".join(f"{name} {limit:g}" for name, limit in limits.items())
        case Inject(texts=texts):
            return ", ".join(texts)
        case Pause(items=True):
            return "nothing that waits is begun"
        case _:
            return ""
