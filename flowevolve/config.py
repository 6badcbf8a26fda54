"""The configuration of a run: TOML, checked as a whole before anything is spent.

Sections that name something (``[algorithm]``, ``[task]``, ``[staleness]``, ``[scheduler.order]``) hold the name and
that thing's own settings, which are checked by the thing itself.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from flowevolve.budget import Budget
from flowevolve.errors import InputError
from flowevolve.registry import describe_validation, did_you_mean


class Section(BaseModel):
    """A closed table: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenSection(BaseModel):
    """A table that also holds the settings of what it names."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @property
    def settings(self) -> Mapping[str, object]:
        return dict(self.model_extra or {})


class AlgorithmSection(OpenSection):
    name: str = "gepa"
    mode: Literal["stream", "sync"] = "stream"
    """``sync`` is the lockstep loop as published; ``stream`` the pipeline."""
    max_in_flight: int = Field(default=16, gt=0)
    """Flows open at a time in ``stream`` mode: enough to keep the server busy, few enough to stay fresh."""
    width: int = Field(default=1, gt=0)
    """Flows per step in ``sync`` mode; 1 is the published loop."""


class TaskSection(OpenSection):
    name: str = "house_style"


class StalenessSection(OpenSection):
    policy: str = "guarded"


class SpeculationSection(Section):
    alpha: dict[str, float] = Field(default_factory=dict)
    """By stage: after which fraction of its requests it releases what it has; 1, or not named: after all."""
    hold: bool = False
    """Start the rest of an evaluation only when its prefix has ended and did not stop it."""
    reorder: bool = False
    """Move validation examples that were passed ``window`` times in a row out of the speculative prefix."""
    window: int = Field(default=3, gt=0)


class RacingSection(OpenSection):
    policy: str = "off"


class AllocationSection(OpenSection):
    policy: str = "fixed"


class OrderSection(OpenSection):
    policy: str = "later_first"


class AdmissionSection(OpenSection):
    policy: str = "fixed"
    interval_seconds: float = Field(default=2.0, gt=0)
    """How often the server is looked at; ``fixed`` never looks."""


class SchedulerSection(Section):
    """Which requests go to the server, and how many at a time."""

    order: OrderSection = OrderSection()
    admission: AdmissionSection = AdmissionSection()


class StageSection(Section):
    workers: int | None = Field(default=None, gt=0)
    min_workers: int | None = Field(default=None, gt=0)
    max_workers: int | None = Field(default=None, gt=0)


class StoppingSection(Section):
    no_improvement: int | None = Field(default=None, gt=0)
    """Stop after so many proposals without a better best score."""
    file: Path | None = None
    """Stop when this file exists."""


class RoleSection(Section):
    """One role of the LLM layer; what is left out is as in ``[llm]``."""

    model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, gt=0)
    timeout_seconds: float | None = Field(default=None, gt=0)
    extra: dict[str, JsonValue] | None = None


class PriceSection(Section):
    """Dollars per million tokens."""

    input: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)


class CacheSection(Section):
    path: Path | None = None
    """The response cache's file, made if it is not there; several runs may share it at once. Without it, no cache."""


class LLMSection(Section):
    backend: Literal["sim", "openai", "replay"] = "sim"
    """``sim``: the simulated server inside this process. ``openai``: any OpenAI-compatible endpoint. ``replay``: the
    replies of a recorded run; set by `flowevolve.replay` alone.
    """
    transport: Literal["openai", "aiohttp"] = "openai"
    """What carries requests to an endpoint: OpenAI's official SDK, or aiohttp alone, which takes much less CPU."""
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key; servers that want none get a placeholder."""
    model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, gt=0)
    timeout_seconds: float = Field(default=600.0, gt=0)
    """For one attempt at one call."""
    patience_seconds: float = Field(default=300.0, ge=0)
    """How long a backend may give no answer at all before the run ends."""
    concurrency: int = Field(default=64, gt=0)
    """Requests in flight at most, over all stages; ``scheduler.admission`` may allow fewer."""
    send_seed: bool = True
    send_priority: bool = False
    """For servers that schedule by priority (vLLM with ``--scheduling-policy priority``)."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Added to every request's body."""
    roles: dict[str, RoleSection] = Field(default_factory=dict)
    prices: dict[str, PriceSection] = Field(default_factory=dict)
    """By model name."""
    cache: CacheSection = CacheSection()

    @model_validator(mode="after")
    def _needs(self) -> LLMSection:
        if self.backend == "openai" and self.model is None:
            raise ValueError("backend 'openai' needs llm.model, the name the server knows the model by")
        return self


class SimSection(Section):
    profile: str = "qwen3-8b-h100"
    world: str = "rules"
    preset: str = "normal"
    """How hard the world is."""


class JournalSection(Section):
    sync: Literal["normal", "full"] = "normal"
    """What the run's record survives: ``normal`` a crash of the process, ``full`` a loss of power too."""


class Config(Section):
    """A whole run."""

    seed: int = Field(default=0, ge=0)
    clock: Literal["real", "virtual"] = "real"
    """``virtual``: time jumps from event to event; only with the simulated backend."""
    algorithm: AlgorithmSection = AlgorithmSection()
    task: TaskSection = TaskSection()
    llm: LLMSection = LLMSection()
    sim: SimSection = SimSection()
    staleness: StalenessSection = StalenessSection()
    speculation: SpeculationSection = SpeculationSection()
    racing: RacingSection = RacingSection()
    allocation: AllocationSection = AllocationSection()
    scheduler: SchedulerSection = SchedulerSection()
    stages: dict[str, StageSection] = Field(default_factory=dict)
    stopping: StoppingSection = StoppingSection()
    journal: JournalSection = JournalSection()
    budget: Budget
    drain_seconds: float = Field(default=30.0, ge=0)
    """How long open work may go on after a stop before it is cut off."""
    held_out: bool = False
    """Score seed and best on the task's test split at the end."""

    @model_validator(mode="after")
    def _checks(self) -> Config:
        if self.clock == "virtual" and self.llm.backend not in ("sim", "replay"):
            raise ValueError("clock 'virtual' needs llm.backend 'sim': real servers live in real time")
        if self.budget.time_limit() is None and not self.budget.limits() and self.budget.target_score is None:
            raise ValueError("budget: give at least one limit, such as budget.minutes or budget.proposals")
        if self.budget.dollars is not None:
            self._check_prices()
        return self

    def _check_prices(self) -> None:
        models = {self.llm.model, *(role.model for role in self.llm.roles.values())} - {None}
        for model in sorted(name for name in models if name is not None):
            if model not in self.llm.prices:
                raise ValueError(f"budget.dollars needs the price of {model!r}: add [llm.prices.{json.dumps(model)}]")


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a config file and apply ``key=value`` overrides, whose values are read as TOML or else as plain text.

    Raises:
        InputError: naming file, key and what is wrong.
    """
    try:
        table: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such config file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    for override in overrides:
        _override(table, override)
    return parse_config(table, str(path))


def parse_config(table: Mapping[str, object], source: str) -> Config:
    """Check a configuration given as a table.

    Raises:
        InputError: naming ``source``, the key and what is wrong.
    """
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{source}: {_unknown_key(error) or describe_validation(error)}") from None


def with_overrides(config: Config, overrides: Sequence[str]) -> Config:
    """A configuration with ``key=value`` overrides.

    Raises:
        InputError: naming the override or the key, and what is wrong.
    """
    table = config.model_dump(mode="json", exclude_none=True)
    for override in overrides:
        _override(table, override)
    return parse_config(table, "--set") if overrides else config


def _override(table: dict[str, object], override: str) -> None:
    key, equals, text = override.partition("=")
    path = key.strip().split(".")
    if not equals or not all(path):
        raise InputError(f"--set {override}: write it as --set key.of.setting=value")
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    inner = table
    for name in path[:-1]:
        following = inner.setdefault(name, {})
        if not isinstance(following, dict):
            raise InputError(f"--set {override}: {name!r} is a value, not a section")
        inner = following
    inner[path[-1]] = value


def _unknown_key(error: ValidationError) -> str | None:
    for detail in error.errors():
        if detail["type"] == "extra_forbidden":
            *section, key = map(str, detail["loc"])
            known = _known_keys(section)
            return f"{'.'.join([*section, key])}: unknown key; {did_you_mean(key, known)}"
    return None


def _known_keys(section: Sequence[str]) -> list[str]:
    model: type[BaseModel] = Config
    for name in section:
        field = model.model_fields.get(name)
        annotation = field.annotation if field is not None else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)
