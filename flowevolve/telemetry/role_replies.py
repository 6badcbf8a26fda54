"""Counts replies that are of little use: those that the token limit has cut off, in which what is read may end in the
middle of a word, and those without a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowevolve._util.words import counted
from flowevolve.core.calls import CallRecord, RoleReplies
from flowevolve.core.model import ChatReply

SHARE_TOLD = 0.05
"""If at least this share of a role's replies was cut off or was empty, the progress display and the result's one line
say so.
"""


class CutCount(NamedTuple):
    """How many replies were cut off, and how many there were."""

    cut: int
    of: int


class EmptyCount(NamedTuple):
    """How many replies had no text, though they were not cut off, and how many replies there were."""

    empty: int
    of: int


@dataclass(slots=True)
class RoleReplyCounter:
    """Counts replies by role, as an observer of calls."""

    by_role: dict[str, RoleReplies] = field(default_factory=dict)

    def restore(self, counts: Mapping[str, RoleReplies]) -> None:
        """Begin with the replies that came before the run was interrupted."""
        self.by_role = dict(counts)

    def call(self, record: CallRecord) -> None:
        if isinstance(record.reply, ChatReply):
            self.by_role[record.role] = self.by_role.get(record.role, RoleReplies()).and_of(record.reply)


def roles_cut(counts: Mapping[str, RoleReplies]) -> dict[str, CutCount]:
    """The counts of those roles that had any replies cut off."""
    return {role: CutCount(each.cut, each.of) for role, each in counts.items() if each.cut}


def roles_empty(counts: Mapping[str, RoleReplies]) -> dict[str, EmptyCount]:
    """The counts of those roles that had any empty replies."""
    return {role: EmptyCount(each.empty, each.of) for role, each in counts.items() if each.empty}


def poor_to_json(cut: Mapping[str, CutCount], empty: Mapping[str, EmptyCount]) -> dict[str, object]:
    """What results and overviews have of them as JSON."""
    return {
        "cut_replies": {role: count._asdict() for role, count in cut.items()},
        "empty_replies": {role: count._asdict() for role, count in empty.items()},
    }


def read_cut(table: Mapping[str, Any] | None) -> dict[str, CutCount]:
    """The counts from a result; empty for results of older versions, as in `read_empty`."""
    return {role: CutCount(count["cut"], count["of"]) for role, count in (table or {}).items()}


def read_empty(table: Mapping[str, Any] | None) -> dict[str, EmptyCount]:
    return {role: EmptyCount(count["empty"], count["of"]) for role, count in (table or {}).items()}


def cut_said(role: str, count: CutCount) -> str:
    return f"{_share(count.cut, count.of, role)} cut by the limit of tokens"


def empty_said(role: str, count: EmptyCount) -> str:
    return f"{_share(count.empty, count.of, role)} empty"


def _share(some: int, of: int, role: str) -> str:
    return f"{some:,} of {counted(of, 'reply', 'replies')} in role {role!r} {'was' if some == 1 else 'were'}"


def many_poor(cut: Mapping[str, CutCount], empty: Mapping[str, EmptyCount]) -> list[str]:
    """For each role of which at least the share `SHARE_TOLD` of the replies was cut off, a sentence that says so, and
    the same for empty replies.
    """
    return [
        *(cut_said(role, count) for role, count in cut.items() if count.cut >= SHARE_TOLD * count.of),
        *(empty_said(role, count) for role, count in empty.items() if count.empty >= SHARE_TOLD * count.of),
    ]
