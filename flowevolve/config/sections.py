"""The sections of a configuration, apart from those that have a module of their own.

Those that name something (``[algorithm]``, ``[task]``, ``[staleness]``, ``[scheduler.order]``) hold the name and the
settings of what it names, which checks them itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from flowevolve._util.settings import OpenSettings, Settings
from flowevolve.core.policies import Aim
from flowevolve.llm.transports.sender import LARGEST_PRIORITY, LARGEST_SHARE, SMALLEST_SHARE
from flowevolve.prompts.shipped import MAX_TEXT_TOKENS, MAX_TOKENS
from flowevolve.sim.faults import FAULTS, Fault


class AlgorithmSettings(OpenSettings):
    name: str = "gepa"
    mode: Literal["stream", "sync"] = "stream"
    """``sync`` is the lockstep loop as published; ``stream`` the pipeline."""
    max_in_flight: PositiveInt | Literal["auto"] = "auto"
    """How many flows may be open at once in ``stream`` mode. ``auto``: as many as are useful, given what an edit and a
    validation cost, and as the server and the budget allow (`flowevolve.policies.flows`).
    """
    aim: Aim = "balanced"
    """What ``auto`` aims for: ``score``, the best score at equal cost, with fewer flows, or ``time``, the least time to
    reach a score, with more, in particular as long as validations accept their candidates.
    """
    width: int = Field(default=1, gt=0)
    """Flows per step in ``sync`` mode; 1 is the published loop."""


class TaskSettings(OpenSettings):
    name: str = "house_style"


class StalenessSettings(OpenSettings):
    policy: str | None = None
    """By default the algorithm's."""


class SpeculationSettings(Settings):
    alpha: dict[str, float] = Field(default_factory=dict)
    """By stage, the fraction of its requests after which it releases what it has; 1, or a stage left out: all."""
    hold: bool = False
    """Start the rest of an evaluation only when its prefix has ended and did not stop it."""
    reorder: bool = False
    """Move validation examples that were passed ``window`` times in a row out of the speculative prefix."""
    window: int = Field(default=3, gt=0)


class RacingSettings(OpenSettings):
    policy: str = "off"


class AllocationSettings(OpenSettings):
    policy: str = "fixed"


class OrderSettings(OpenSettings):
    policy: str = "later_first"


class AdmissionSettings(OpenSettings):
    policy: str = "fixed"
    interval_seconds: float = Field(default=2.0, gt=0)
    """The seconds between two looks at the server's load; ``fixed`` never looks."""


class SchedulerSettings(Settings):
    """Which requests go to the server, and how many at a time."""

    share: float = Field(default=1.0, ge=SMALLEST_SHARE, le=LARGEST_SHARE)
    """Behind a gateway: how much of the server this run gets, relative to the shares of the other runs."""
    priority: int = Field(default=0, ge=-LARGEST_PRIORITY, le=LARGEST_PRIORITY)
    """Behind a gateway: runs with a lower number go first, and the others get what they leave."""
    order: OrderSettings = OrderSettings()
    admission: AdmissionSettings = AdmissionSettings()


class StageSettings(Settings):
    workers: int | None = Field(default=None, gt=0)
    min_workers: int | None = Field(default=None, gt=0)
    max_workers: int | None = Field(default=None, gt=0)


class PromptSettings(Settings):
    """What prompts are written from."""

    dir: Path | None = None
    """A folder with your own templates, ``NAME.md``, which replace the shipped ones of the same names."""
    max_tokens: int = Field(default=MAX_TOKENS, ge=1000)
    """The approximate token limit of a prompt: the longest of the texts that it shows are shortened until it fits."""
    max_text_tokens: int = Field(default=MAX_TEXT_TOKENS, ge=50)
    """The approximate token limit of an evolved text; one that is made from a longer text may be as long as that."""


class StoppingSettings(Settings):
    no_improvement: int | None = Field(default=None, gt=0)
    """Stop after this many proposals in a row that did not raise the best score."""
    unevaluated: int = Field(default=500, gt=0)
    """Stop after this many proposals in a row during which nothing was evaluated or run."""
    unproductive: int = Field(default=500, gt=0)
    """Stop after this many flows in a row that led to neither a proposal nor a commit."""
    fruitless: int = Field(default=30, gt=0)
    """End the run with an error after this many flows if none of them achieved anything: their replies could not be
    read or changed nothing, or their calls failed.
    """
    file: Path | None = None
    """Stop when this file exists."""


class FaultsSettings(Settings):
    """Calls to the simulated server that go wrong on purpose."""

    rate: float = Field(default=0.0, ge=0, le=1)
    """The share of attempts that go wrong."""
    kinds: list[Fault] = Field(default=list(FAULTS), min_length=1)
    seed: int = 0


class SimSettings(Settings):
    profile: str = "qwen3-8b-h100"
    world: str = "rules"
    preset: str = "normal"
    """How hard the world is."""
    faults: FaultsSettings = FaultsSettings()


class JournalSettings(Settings):
    sync: Literal["normal", "full"] = "normal"
    """What the run's record survives: ``normal`` a crash of the process, ``full`` a loss of power too."""


class StartSettings(Settings):
    run: Path
    """The directory of a run whose pool this one starts from, instead of from its own seed."""
    version: int | None = Field(default=None, gt=0)
    """That pool's version; by default its last."""


class BranchSettings(Settings):
    """The candidate of another run from which a run was branched off, and whose texts are its seed."""

    run: str
    """The directory of that run, as it was named then."""
    candidate: str
    version: int | None = None
    """The version of that run's pool in which the candidate was added; None if it never was."""
    texts: dict[str, str] = Field(min_length=1)
    """The texts by component, in place of those of the task's own seed."""
