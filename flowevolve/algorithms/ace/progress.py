"""Where an ACE run stands: lessons that wait for the curator, what was learnt and tested. A function of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from flowevolve.algorithms.ace.payloads import Learned, Lesson
from flowevolve.llm.types import JSON
from flowevolve.pool import Add, Candidate, Note, Update

SAMPLE, CURATING, VALIDATING, EDIT, TESTED = "ace.sample", "ace.curating", "ace.validating", "ace.edit", "ace.tested"
"""Kinds of notes."""


def sample_note(learned: Learned) -> Note:
    """Says that a sample was learnt from, and what."""
    lesson = learned.lesson.to_json()
    return Note(SAMPLE, {"lesson": lesson, "right_at_first": learned.right_at_first, "right": learned.right})


class Progress:
    """``best`` is the best validated playbook, of equals the first; online the last one tested."""

    def __init__(self, adaptation: Literal["offline", "online"]) -> None:
        self.edits = 0
        self.since_curation = 0
        """Samples since lessons were last given to the curator."""
        self.since_validation = 0
        self.pending: list[Lesson] = []
        """Lessons that no curator was given yet, oldest first."""
        self.tested: set[int] = set()
        """Windows that were tested."""
        self.best: Candidate | None = None
        self.latest: Candidate | None = None
        """The playbook that was last scored."""
        self._adaptation = adaptation

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self._scored(candidate)
                case Note(kind=kind, data=data):
                    self._note(kind, data)
                case _:
                    pass

    def _scored(self, candidate: Candidate) -> None:
        self.latest = candidate
        if self._adaptation == "online" or self.best is None or candidate.mean_score > self.best.mean_score:
            self.best = candidate

    def _note(self, kind: str, data: Mapping[str, JSON]) -> None:
        if kind == SAMPLE:
            self.since_curation += 1
            self.since_validation += 1
            lesson = Lesson.of(cast("dict[str, JSON]", data["lesson"]))
            if lesson.texts:
                self.pending.append(lesson)
        elif kind == CURATING:
            self.since_curation = 0
            self.pending = []
        elif kind == VALIDATING:
            self.since_validation = 0
        elif kind == EDIT:
            self.edits += 1
        elif kind == TESTED:
            self.tested.add(cast(int, data["window"]))
