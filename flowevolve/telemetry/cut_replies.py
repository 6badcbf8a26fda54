"""Counts replies that the token limit has cut off: what is read from them may end in the middle of a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatReply

SHARE_TOLD = 0.05
"""If at least this share of a role's replies was cut off, the progress display and the result's one line say so."""


class CutCount(NamedTuple):
    """How many replies were cut off, and how many there were."""

    cut: int
    of: int


@dataclass(slots=True)
class CutReplies:
    """Counts replies, as an observer of calls. It does not see those from before a run was interrupted."""

    _replies: Counter[str] = field(default_factory=Counter)
    _cut: Counter[str] = field(default_factory=Counter)

    def call(self, record: CallRecord) -> None:
        if isinstance(record.reply, ChatReply):
            self._replies[record.role] += 1
            self._cut[record.role] += record.reply.was_cut

    def by_role(self) -> dict[str, CutCount]:
        """The counts of those roles that had any replies cut off."""
        return {role: CutCount(cut, self._replies[role]) for role, cut in self._cut.items() if cut}


def cut_to_json(counts: Mapping[str, CutCount]) -> dict[str, dict[str, int]]:
    return {role: count._asdict() for role, count in counts.items()}


def read_cut(table: Mapping[str, Any] | None) -> dict[str, CutCount]:
    """The counts from a result; empty for results of older versions."""
    return {role: CutCount(count["cut"], count["of"]) for role, count in (table or {}).items()}


def cut_said(role: str, count: CutCount) -> str:
    return f"{count.cut} of {count.of} replies of {role} were cut by the limit of tokens"


def many_cut(counts: Mapping[str, CutCount]) -> list[str]:
    """For each role of which at least the share `SHARE_TOLD` of the replies was cut off, a sentence that says so."""
    return [cut_said(role, count) for role, count in counts.items() if count.cut >= SHARE_TOLD * count.of]
