"""A playbook: bullets of advice with counters, grown and mended by small operations (ACE, arXiv 2510.04618, §3).

The playbook is a function of the log's `PlaybookChange` notes, so any version of it can be rebuilt. UPDATE, MERGE and
DELETE say which text of a bullet they were made for, and do nothing to a bullet that has changed since (compare and
swap). Increments of counters commute and always count: for a bullet that was merged they go to the bullet that it is
part of now, and for a deleted bullet they are kept with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal

from flowevolve._util.errors import InputError
from flowevolve.core.model import CHARS_PER_TOKEN
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Note, Update
from flowevolve.core.record import Record
from flowevolve.prompts.reading.notes import NOTE_LINE

Verb = Literal["ADD", "UPDATE", "MERGE", "DELETE"]
Counts = Mapping[str, tuple[int, int]]
"""Increments of the helpful and harmful counters, by bullet id."""
_LIKE_BULLET = re.compile(r"\s*(?:[-*+]\s*)?\[")


@payload("playbook.Bullet")
@dataclass(frozen=True, slots=True)
class Bullet:
    """One piece of advice. ``changed`` is the pool version that gave it its text."""

    id: str
    section: str
    text: str
    helpful: int = 0
    harmful: int = 0
    changed: int = 0

    @property
    def digest(self) -> str:
        """A hash of the section and the text, but not of the counters."""
        return sha256(f"{self.section}\x1f{self.text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


@payload("playbook.Operation")
@dataclass(frozen=True, slots=True)
class Operation:
    """One change of a playbook. ``seen`` maps the ids of the bullets it is about to the digests they had when it was
    made.

    ADD has a section and a text, UPDATE a bullet and its new text, and DELETE a bullet. MERGE has several bullets and
    the text that replaces them, in the place of the first.
    """

    verb: Verb
    section: str = ""
    text: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)


class PlaybookChange(Record, kind="playbook"):
    """A change of a playbook. ``loaded`` holds bullets that it starts from: id, section, text, helpful and harmful."""

    loaded: tuple[tuple[str, str, str, int, int], ...] = ()
    operations: tuple[Operation, ...]
    counts: Counts


def edit_note(operations: Sequence[Operation], counts: Counts) -> Note:
    """The note that changes a playbook."""
    return PlaybookChange(operations=tuple(operations), counts=counts).note()


def load_note(bullets: Iterable[Bullet]) -> Note:
    """The note that puts bullets with ids and counters into a playbook that has none of these ids."""
    loaded = tuple((each.id, each.section, each.text, each.helpful, each.harmful) for each in bullets)
    return PlaybookChange(loaded=loaded, operations=(), counts={}).note()


class Playbook:
    """The playbook as of the latest update. ``conflicts`` counts the operations that came too late and did nothing."""

    def __init__(self) -> None:
        self.conflicts = 0
        self.version = 0
        """The version of the latest update."""
        self._live: dict[str, Bullet] = {}
        self._gone: dict[str, Bullet] = {}
        self._merged: dict[str, str] = {}
        self._last = 0

    @classmethod
    def as_of(cls, updates: Iterable[Update]) -> Playbook:
        """The playbook after these updates, which must begin with the first one of the run."""
        book = cls()
        for update in updates:
            book.apply(update)
        return book

    def apply(self, update: Update) -> None:
        self.version = update.version
        for change in update.changes:
            if isinstance(change, Note) and change.kind == PlaybookChange.kind:
                self._take(PlaybookChange.from_json(change.data))

    def _take(self, change: PlaybookChange) -> None:
        for name, section, text, helpful, harmful in change.loaded:
            self._live[name] = Bullet(name, section, text, helpful, harmful, self.version)
            self._last = max(self._last, int(name.rpartition("-")[2]))
        for operation in change.operations:
            self._do(operation)
        for name, (helpful, harmful) in change.counts.items():
            self._count(name, helpful, harmful)

    def _do(self, operation: Operation) -> None:
        if not self.fits(operation):
            self.conflicts += 1
            return
        names = list(operation.seen)
        match operation.verb:
            case "ADD":
                self._last += 1
                name = f"{slug(operation.section)}-{self._last:05d}"
                self._live[name] = Bullet(name, operation.section, operation.text, changed=self.version)
            case "UPDATE":
                self._live[names[0]] = replace(self._live[names[0]], text=operation.text, changed=self.version)
            case "MERGE":
                self._merge(names, operation.text)
            case "DELETE":
                self._gone[names[0]] = self._live.pop(names[0])

    def _merge(self, names: Sequence[str], text: str) -> None:
        parts = [self._live[name] for name in names]
        for part in parts[1:]:
            self._gone[part.id] = self._live.pop(part.id)
            self._merged[part.id] = names[0]
        helpful, harmful = sum(part.helpful for part in parts), sum(part.harmful for part in parts)
        self._live[names[0]] = replace(parts[0], text=text, helpful=helpful, harmful=harmful, changed=self.version)

    def _count(self, name: str, helpful: int, harmful: int) -> None:
        while name in self._merged:
            name = self._merged[name]
        for bullets in (self._live, self._gone):
            if name in bullets:
                bullet = bullets[name]
                bullets[name] = replace(bullet, helpful=bullet.helpful + helpful, harmful=bullet.harmful + harmful)

    def fits(self, operation: Operation) -> bool:
        """Whether all bullets that the operation is about are unchanged since it was made."""
        return all(name in self._live and self._live[name].digest == digest for name, digest in operation.seen.items())

    @property
    def bullets(self) -> Sequence[Bullet]:
        """The live bullets, oldest first."""
        return list(self._live.values())

    @property
    def gone(self) -> Mapping[str, Bullet]:
        """Bullets that were deleted, or merged into another."""
        return self._gone

    @property
    def deleted(self) -> Mapping[str, Bullet]:
        """Bullets that were deleted, with their counters."""
        return {name: bullet for name, bullet in self._gone.items() if name not in self._merged}

    def __contains__(self, name: str) -> bool:
        return name in self._live

    def __getitem__(self, name: str) -> Bullet:
        """The live bullet of this id.

        Raises:
            KeyError: if there is none.
        """
        return self._live[name]

    def changed_since(self, version: int) -> list[Bullet]:
        """The live bullets whose text is newer than this version of the pool."""
        return [bullet for bullet in self._live.values() if bullet.changed > version]


def render(bullets: Iterable[Bullet], *, counters: bool = False) -> str:
    """Bullets under their sections, one a line, as `parse_bullets` reads them. Counters are left out by default, so
    that a prompt stays the same, and cached, while they change.
    """
    sections: dict[str, list[str]] = {}
    for bullet in bullets:
        shown = f" (helpful {bullet.helpful}, harmful {bullet.harmful})" if counters else ""
        sections.setdefault(bullet.section, []).append(f"- [{bullet.id}] {bullet.text}{shown}")
    return "\n\n".join("\n".join((f"### {section}", *lines)) for section, lines in sections.items())


def parse_bullets(text: str) -> list[Bullet]:
    """The bullets of a rendered playbook; lines of prose are passed over.

    Raises:
        InputError: if a line looks like a bullet but is none, or an id occurs twice.
    """
    found: dict[str, Bullet] = {}
    section = "strategies"
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("### "):
            section = line.removeprefix("### ").strip()
        elif match := NOTE_LINE.match(line):
            name, counts = match["id"], (int(match["up"] or 0), int(match["down"] or 0))
            if name in found:
                raise InputError(f"line {number}: the id {name} comes a second time; give each bullet one of its own")
            found[name] = Bullet(name, section, match["text"], *counts)
        elif _LIKE_BULLET.match(line):
            raise InputError(
                f"line {number}: {line!r:.80} is not read as a bullet; write it as '- [str-00001] text': up to three "
                "small letters and at least five digits"
            )
    return list(found.values())


def slug(section: str) -> str:
    """The first three letters of a section's name."""
    return re.sub(r"[^a-z]", "", section.lower())[:3] or "bul"


def within(bullets: Sequence[Bullet], token_budget: int) -> list[Bullet]:
    """The bullets that a prompt has room for. The least helpful ones are left out first, and of equally helpful ones
    those whose text is oldest.

    A bullet that is longer than the remaining room is skipped, and shorter ones may still be taken.
    """
    ranked = sorted(bullets, key=lambda bullet: (bullet.harmful - bullet.helpful, -bullet.changed))
    kept: set[str] = set()
    left = token_budget * CHARS_PER_TOKEN
    for bullet in ranked:
        length = len(bullet.text) + len(bullet.id) + 6
        if length <= left:
            left -= length
            kept.add(bullet.id)
    return [bullet for bullet in bullets if bullet.id in kept]
