"""Checks of a finished run from its journal alone, with accounting that shares no code with the engine's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

from flowevolve.core.events import Event
from flowevolve.journal.reading import RecordedCall, RecordedRun


@dataclass
class Books:
    """What the first events of a run add up to."""

    version: int = 0
    confirmed: dict[str, int] = field(default_factory=dict)
    """Candidates in the pool, each with the version that confirmed it."""
    added: Counter[str] = field(default_factory=Counter)
    commits: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each item committed at each stage; commits of the engine itself are left out."""
    jumps: int = 0
    """How many versions do not follow directly on the version before."""
    accepted: int = 0
    """Candidates confirmed in the main pool that the run itself created: neither seeds nor migrated ones."""
    begun: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    cost: Counter[str] = field(default_factory=Counter)
    proposed: dict[str, str] = field(default_factory=dict)
    """The last status of each candidate."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Books:
        books = cls()
        for event in events:
            books.take(event)
        return books

    def take(self, event: Event) -> None:
        data: dict[str, Any] = dict(event.data)
        match event.kind:
            case "flow.open":
                self.begun[str(data["flow"])] += 1
            case "item.sent":
                self.begun[data["item"]] += 1
            case "item.done":
                self.done[data["item"]] += 1
                self.cost.update(data["cost"])
            case "phase.ended":
                self.cost.update(data["cost"])
            case "candidate.proposed":
                self.proposed[data["candidate"]] = "proposed"
            case "candidate.rejected":
                self.proposed[data["candidate"]] = "rejected"
            case "pool.commit":
                self._commit(data)

    def _commit(self, data: dict[str, Any]) -> None:
        self.jumps += data["version"] != self.version + 1
        self.version = data["version"]
        if data["stage"] is not None:
            self.commits[data["item"], data["stage"]] += 1
        for change in data["changes"]:
            if "status" not in change:
                continue  # notes on a candidate
            name = change.get("add") or change.get("move")
            self.added[name] += "add" in change
            self.proposed[name] = change["status"]
            if change["status"] == "confirmed":
                self.confirmed[name] = self.version
                self.accepted += change["pool"] == "main" and change.get("operator") not in ("seed", "migrate")

    @property
    def repeated_updates(self) -> int:
        """How many versions are out of order, candidates entered twice, and items committed more than once at a
        stage.
        """
        twice = sum(count - 1 for count in self.added.values() if count > 1)
        return self.jumps + twice + sum(count - 1 for count in self.commits.values() if count > 1)

    @property
    def unaccounted(self) -> int:
        """How many items were not begun exactly once or did not end exactly once."""
        return sum(self.begun[item] != 1 or self.done[item] != 1 for item in self.begun.keys() | self.done.keys())


def request_key(messages: Iterable[Sequence[object]], seed: object) -> str:
    """A hash of what a request asks, which server and journal both can compute. The seed stands for stage, item and
    index.
    """
    text = json.dumps([[list(message) for message in messages], seed])
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def key_of(call: RecordedCall) -> str:
    """The key of a call whose texts have not been dropped by a compaction."""
    assert call.messages is not None
    return request_key([(message.role, message.content) for message in call.messages], call.seed)


def faults_at_the_end(directory: Path, *, held: bool = False) -> list[str]:
    """Say what does not add up in a run that ended. ``held`` says that its end may have cut items off."""
    with RecordedRun(directory) as recorded:
        events, calls = list(recorded.events()), list(recorded.calls())
    result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    books = Books.of(events)
    replies = [call for call in calls if call.usage is not None and not call.cached]
    tokens = sum(call.usage.total_tokens for call in replies if call.usage is not None)
    known = [call for call in calls if call.usage is not None and call.messages is not None]
    paid = Counter((call.stage, call.item, call.index, call.messages) for call in known)
    expected = {
        "events that are not in order": (
            0,
            sum(b.seq != a.seq + 1 or b.time < a.time for a, b in pairwise(events)) + (events[0].seq != 0),
        ),
        "repeated updates": (0, books.repeated_updates),
        "replies paid twice": (0, sum(paid.values()) - len(paid)),
        "the pool's version": (books.version, result["pool_version"]),
        "candidates accepted": (books.accepted, result["accepted"]),
        "calls in the result": (sum(not call.cached for call in calls), result["llm"]["requests"]),
        "tokens in the result": (tokens, result["llm"]["prompt_tokens"] + result["llm"]["completion_tokens"]),
    }
    if not held:
        expected |= {
            "items not accounted for": (0, books.unaccounted),
            "candidates left open": (0, sum(s in ("proposed", "speculative") for s in books.proposed.values())),
            "tokens charged": (tokens, books.cost["tokens"]),
            "rollouts": (books.cost["rollouts"], result["rollouts"]),
            "proposals": (books.cost["proposals"], result["proposals"]),
        }
    return [f"{what}: {found} instead of {wanted}" for what, (wanted, found) in expected.items() if wanted != found]
