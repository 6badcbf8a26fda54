"""The entries of a memory of experience with other tasks."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

_IDS = UUID("6f0a4f1e-6d0f-5b0e-9d0b-3f2f5b0c7a11")


class MemoryUnavailableError(Exception):
    """The store does not answer any more, or an operation failed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of experience: the task it was made with, when it applies, and what to do there."""

    task: str
    title: str
    text: str

    @property
    def id(self) -> str:
        """Derived from the content, so that an entry which is added twice is stored once."""
        return str(uuid5(_IDS, "\x1f".join((self.task, self.title, self.text))))


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that a search found, with its vector."""

    entry: Entry
    vector: tuple[float, ...]


def text_to_embed(entry: Entry) -> str:
    return f"{entry.title}\n{entry.text}"
