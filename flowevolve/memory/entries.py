"""What a global memory holds, and how it fails."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

_IDS = UUID("6f0a4f1e-6d0f-5b0e-9d0b-3f2f5b0c7a11")


class MemoryUnavailableError(Exception):
    """The store does not answer any more, or can't do what was asked of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of experience: the task it was made with, when it applies, and what to do there."""

    task: str
    title: str
    text: str

    @property
    def id(self) -> str:
        """Derived from the content: an entry that is added twice is there once."""
        return str(uuid5(_IDS, "\x1f".join((self.task, self.title, self.text))))


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that was searched for, with its vector."""

    entry: Entry
    vector: tuple[float, ...]
