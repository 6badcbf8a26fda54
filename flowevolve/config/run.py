"""The configuration of a run: TOML, checked as a whole before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from flowevolve._util.errors import InputError
from flowevolve._util.plugins import looking_in
from flowevolve._util.registry import describe_validation
from flowevolve._util.settings import Settings
from flowevolve.config.backends import REAL_BACKENDS
from flowevolve.config.key_errors import misplaced_key, unknown_key
from flowevolve.config.llm import LLMSettings
from flowevolve.config.presets import Preset, with_preset
from flowevolve.config.sections import (
    AlgorithmSettings,
    AllocationSettings,
    BranchSettings,
    JournalSettings,
    PromptSettings,
    RacingSettings,
    SchedulerSettings,
    SimSettings,
    SpeculationSettings,
    StageSettings,
    StalenessSettings,
    StartSettings,
    StoppingSettings,
    TaskSettings,
)
from flowevolve.config.table import load_table, override
from flowevolve.core.budget import Budget
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.vllm.settings import VLLMSettings

RESTART_SECONDS = 60.0
"""The time until the death of a vLLM is noticed, plus the time from its recovery until waiting requests are sent."""

WORLDS_OF_TASKS: Mapping[str, str] = {"program": "code", "harness": "harness"}
"""The simulated model that is used by default, by task name or kind of artifact; for all others it is ``rules``."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a configuration was read from; ignored when configurations are compared."""

    folder: Path | None = field(default=None, compare=False)


class Config(Settings):
    """A whole run."""

    preset: Preset = "default"
    """What is left open is decided as the preset of this name says (`flowevolve.config.presets`)."""
    seed: int = Field(default=0, ge=0)
    clock: Literal["real", "virtual"] = "real"
    """``virtual``: time jumps from event to event; only with the simulated backend."""
    algorithm: AlgorithmSettings = AlgorithmSettings()
    task: TaskSettings = TaskSettings()
    llm: LLMSettings = LLMSettings()
    sim: SimSettings = SimSettings()
    vllm: VLLMSettings = VLLMSettings()
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    """Where the programs of task ``program`` and the harnesses of Meta-Harness run."""
    staleness: StalenessSettings = StalenessSettings()
    speculation: SpeculationSettings = SpeculationSettings()
    racing: RacingSettings = RacingSettings()
    allocation: AllocationSettings = AllocationSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    stages: dict[str, StageSettings] = Field(default_factory=dict)
    prompts: PromptSettings = PromptSettings()
    stopping: StoppingSettings = StoppingSettings()
    journal: JournalSettings = JournalSettings()
    start: StartSettings | None = None
    branch: BranchSettings | None = None
    budget: Budget
    drain_seconds: float = Field(default=30.0, ge=0)
    """How long open work may go on after a stop before it is cut off."""
    held_out: bool = False
    """Score seed and best on the task's test split at the end."""
    watch: bool = False
    """Serve the run's live page while it goes on; its address is reported when the run begins."""
    _place: _Place = PrivateAttr(default=_Place())

    @classmethod
    def _describe(cls, error: ValidationError) -> str:
        return misplaced_key(error) or unknown_key(error, cls) or describe_validation(error)

    @model_validator(mode="after")
    def _checks(self) -> Config:
        if self.clock == "virtual" and self.llm.backend in REAL_BACKENDS:
            raise ValueError(
                "clock 'virtual' needs llm.backend 'sim', because real servers answer in real time; set clock to 'real'"
            )
        if self.clock == "virtual" and self.sandbox.on != "here":
            raise ValueError(
                f"clock 'virtual' needs sandbox.on 'here', because {self.sandbox.on!r} answers in real time"
            )
        if self.sandbox.on == self.vllm.on == "ray" and self.sandbox.address != self.vllm.address:
            raise ValueError(
                f"vllm.address is {self.vllm.address!r}, but sandbox.address is {self.sandbox.address!r}, and a run "
                "can be part of only one Ray cluster; give both the same address"
            )
        if self.llm.backend == "vllm" and not self.llm.urls and self.llm.model is None:
            raise ValueError(
                "backend 'vllm' needs llm.model, the model to load, or the llm.base_url of a vLLM that runs already"
            )
        if self.budget.time_limit() is None and not self.budget.limits() and self.budget.target_score is None:
            raise ValueError("budget: give at least one limit, such as budget.minutes or budget.proposals")
        return self


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> Config:
    """Read and check a config file, with ``key=value`` overrides. Modules that it names may be in the same folder.

    Raises:
        InputError: naming file, key and what is wrong.
    """
    table = load_table(path, overrides)
    config = parse_config(table, str(path))
    config._place = _Place(Path(path).resolve().parent)
    return config


def modules_beside(config: Config) -> AbstractContextManager[None]:
    """A context in which modules are also looked for in the folder that the configuration was read from."""
    return looking_in(config._place.folder)


def parse_config(table: Mapping[str, object], source: str) -> Config:
    """Check a configuration given as a table, and let its preset decide what it leaves open.

    Raises:
        InputError: naming ``source``, the key and what is wrong.
    """
    config = _checked(table, source)
    try:
        return _checked(with_preset(table, config.preset), source)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def parse_recorded(table: Mapping[str, object], source: str) -> Config:
    """Check the configuration that a run has recorded, to which its preset has been applied already. A run from before
    there were presets names none, and ran as ``plain`` does.

    Raises:
        InputError: as `parse_config`.
    """
    return _checked({"preset": "plain", **table}, source)


def _checked(table: Mapping[str, object], source: str) -> Config:
    try:
        return _suit_world(_suit_vllm(Config.model_validate(table)))
    except ValidationError as error:
        raise InputError(f"{source}: {Config._describe(error)}") from None


def with_overrides(config: Config, overrides: Sequence[str]) -> Config:
    """A configuration with ``key=value`` overrides. Its preset has been applied already and is not applied again.

    Raises:
        InputError: naming the override or the key, and what is wrong.
    """
    table = config.model_dump(mode="json", exclude_none=True)
    for each in overrides:
        override(table, each)
    if not overrides:
        return config
    changed = parse_recorded(table, "--set")
    changed._place = config._place
    return changed


def _suit_vllm(config: Config) -> Config:
    """Fill in the settings that suit a vLLM, if the config leaves them open."""
    llm = config.llm
    if llm.backend != "vllm":
        return config
    suits: dict[str, object] = {"transport": "aiohttp"}
    if not llm.urls:
        suits["send_priority"] = config.vllm.by_priority
        # While the run's own server restarts, nothing answers.
        suits["patience_seconds"] = max(llm.patience_seconds, config.vllm.startup_seconds + RESTART_SECONDS)
    left_open = {name: value for name, value in suits.items() if name not in llm.model_fields_set}
    return config.model_copy(update={"llm": llm.model_copy(update=left_open)})


def _suit_world(config: Config) -> Config:
    """Choose a simulated model that can write what the task asks for, if the config names none."""
    world = WORLDS_OF_TASKS.get(config.task.name)
    if world is None or "world" in config.sim.model_fields_set:
        return config
    return config.model_copy(update={"sim": config.sim.model_copy(update={"world": world})})
