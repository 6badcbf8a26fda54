"""A case: what one seed stands for, as plain data that can be written down, changed and run again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from pydantic import TypeAdapter

from flowevolve._util.json_types import JSON
from flowevolve.config.run import Config, parse_config

Deed = Literal[
    "kill",
    "abandon",
    "cancel",
    "stop",
    "pause",
    "pause items",
    "inject",
    "disk full",
    "veto",
    "approve",
    "comment",
    "raise",
    "edit",
]
"""What is done to a run. ``kill``: the process dies, and what it had not written is lost. ``abandon``: the task that
awaits the run is cancelled. ``disk full``: nothing more can be written from then on. The last five are acts of somebody
who watches the run: ``raise``, for example, raises a limit of the budget, and ``edit`` edits a candidate.
"""
DEEDS: tuple[Deed, ...] = get_args(Deed)
FaultKind = Literal[
    "overloaded",
    "error",
    "unreachable",
    "hang",
    "rejected",
    "refused",
    "unreadable",
    "cut",
    "slow",
    "odd usage",
    "embedding",
    "evaluation raises",
    "evaluation fails",
    "evaluation is slow",
]
"""What can go wrong with a call, or with the evaluation of an example."""
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True)
class Act:
    """Something that is done to a run after this many events and calls of its present process."""

    at: int
    deed: Deed
    size: float = 0.5
    """For a pause, its seconds / 100. For a kill, the share of what was not yet on disk that is lost. For an act of
    somebody who watches, which candidate, example or limit it is about, as a share of all there are.
    """


@dataclass(frozen=True)
class Life:
    """One process of a run: what is done to it, and which settings have changed since the process before.

    ``faults`` replaces the case's faults for this process alone; None keeps them.
    """

    acts: tuple[Act, ...] = ()
    changes: Mapping[str, JSON] = field(default_factory=dict)
    faults: Mapping[FaultKind, float] | None = None


@dataclass(frozen=True)
class Case:
    """A run with all that happens to it. ``settings`` are those of its configuration, by their dotted names."""

    seed: int
    settings: Mapping[str, JSON]
    faults: Mapping[FaultKind, float] = field(default_factory=dict)
    """The share of calls, or of examples, that each kind of fault hits."""
    lives: tuple[Life, ...] = (Life(),)
    profile: str = "even"
    """How fast the server is (`bench.simtest.server.PROFILES`)."""
    disk_seconds: float = 0.0
    """Seconds until the disk has what is to be settled."""

    def config(self, life: int) -> Config:
        """The configuration of a life.

        Raises:
            InputError: if there can be no such run.
        """
        table: dict[str, object] = {}
        settings = dict(self.settings)
        for each in self.lives[: life + 1]:
            settings |= each.changes
        for name, value in settings.items():
            _place(table, name.split("."), value)
        return parse_config(table, f"seed {self.seed}")

    def faults_of(self, life: int) -> Mapping[FaultKind, float]:
        """The share of calls, or of examples, that each kind of fault hits in a life."""
        own = self.lives[life].faults
        return self.faults if own is None else own

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Case:
        """The case that `to_json` wrote.

        Raises:
            pydantic.ValidationError: if the text is none.
        """
        return _CASE.validate_json(text)


_CASE = TypeAdapter(Case)


def _place(table: dict[str, object], path: Sequence[str], value: JSON) -> None:
    for name in path[:-1]:
        inner = table.setdefault(name, {})
        assert isinstance(inner, dict), f"{path}: {name} is a value, not a section"
        table = inner
    table[path[-1]] = value
