"""The configuration of a run: TOML, checked as a whole before anything is spent.

Sections that name something (``[algorithm]``, ``[task]``, ``[staleness]``, ``[scheduler.order]``) hold the name and the
settings of what it names, which checks them itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Literal, get_args

from pydantic import BaseModel, Field, PositiveInt, PrivateAttr, ValidationError, model_validator

from flowevolve._util.errors import InputError
from flowevolve._util.plugins import looking_in
from flowevolve._util.registry import describe_validation, did_you_mean
from flowevolve._util.settings import OpenSettings, Settings
from flowevolve.config.backends import REAL_BACKENDS
from flowevolve.config.llm import LLMSettings
from flowevolve.config.presets import Preset, with_preset
from flowevolve.config.table import load_table, override
from flowevolve.core.budget import Budget
from flowevolve.core.policies import Aim
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.llm.transports.sender import LARGEST_PRIORITY, LARGEST_SHARE, SMALLEST_SHARE
from flowevolve.prompts.shipped import MAX_TEXT_TOKENS, MAX_TOKENS
from flowevolve.sim.faults import FAULTS, Fault
from flowevolve.vllm.settings import VLLMSettings

RESTART_SECONDS = 60.0
"""The time until the death of a vLLM is noticed, plus the time from its recovery until waiting requests are sent."""

WORLDS_OF_TASKS: Mapping[str, str] = {"program": "code", "harness": "harness"}
"""The simulated model that is used by default, by task name or kind of artifact; for all others it is ``rules``."""


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
        return misplaced_key(error) or _unknown_key(error) or describe_validation(error)

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


def misplaced_key(error: ValidationError) -> str | None:
    """The error message if an API key may have been written into the configuration; it never shows the value."""
    kept = (
        "Keys don't belong in a configuration, which is kept with every run; give the name of an environment variable "
        "(in capitals) in api_key_env, or a file in api_key_file"
    )
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"]))
        name = place.rpartition(".")[2]
        if name == "api_key_file" and detail["type"] == "path_not_file":
            return f"{place}: there is no such file; name the file that holds the key"
        if name.startswith(("api_key", "apikey")):
            return f"{place}: {kept[:1].lower()}{kept[1:]}"
        if detail["type"] == "secret":
            return f"{place}: {detail['msg']}. {kept}"
    return None


def _unknown_key(error: ValidationError) -> str | None:
    for detail in error.errors():
        if detail["type"] == "extra_forbidden":
            *section, key = map(str, detail["loc"])
            known = _known_keys(section)
            return f"{'.'.join([*section, key])}: unknown key; {did_you_mean(key, known)}"
    return None


def _known_keys(section: Sequence[str]) -> list[str]:
    kind: object = Config
    for name in section:
        kind = _inside(kind, name)
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def _inside(kind: object, name: str) -> object:
    """The type of the value at a key of a section or of a table of sections, or at an index of a list of them."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(name)
        return None if field is None else _unless_left_out(field.annotation)
    return next((part for part in reversed(get_args(kind)) if part is not Ellipsis), None)


def _unless_left_out(kind: object) -> object:
    """The type of a value that may be left out, without None."""
    parts = get_args(kind)
    return next(part for part in parts if part is not NoneType) if NoneType in parts else kind
