"""What a run's roles are, from its configuration: for every model its own form of the ``[llm]`` section."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flowevolve.config import Config
from flowevolve.errors import InputError
from flowevolve.llm_section import LLMSection, ModelSection, RoleSection

SIMULATED = "simulated"
"""The name of the simulated server's model, in a replay of its run as well, where the configuration gives none."""
_BACKEND = {"backend", "base_url", "base_urls", "transport", "api_key_env", "api_key_file"}
_ONE_OF = (("api_key_env", "api_key_file"), ("base_url", "base_urls"))
"""Of each, who says one means that one only."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One model of a role. ``llm`` is the ``[llm]`` section with what the role, and its entry there, say instead."""

    llm: LLMSection
    name: str
    weight: float
    elsewhere: bool
    """Whether it is at another address than ``[llm]`` says."""

    @property
    def must_be_listed(self) -> bool:
        """Whether its server is one of ours, and not an API that need not list all it serves."""
        return self.llm.backend != "openai" and not self.elsewhere

    @property
    def backend(self) -> str:
        """What tells its backend from others: models with equal ones share an open transport."""
        return self.llm.model_dump_json(include=_BACKEND)


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """A role: one model, or several of which each call draws one."""

    models: tuple[ModelSettings, ...]
    concurrency: int | None
    bandit: str | None


def role_settings(config: Config, called: Iterable[str]) -> dict[str, RoleSettings]:
    """The roles that an algorithm calls and those that the configuration adds.

    Raises:
        InputError: if a model has no name.
    """
    names = dict.fromkeys([*called, *config.llm.roles])
    return {name: _settings(config.llm, name, config.llm.roles.get(name, RoleSection())) for name in names}


def model_names(roles: Iterable[RoleSettings]) -> tuple[str, ...]:
    """The names of all models, each once, in the order of the roles."""
    return tuple(dict.fromkeys(model.name for role in roles for model in role.models))


def _settings(llm: LLMSection, name: str, role: RoleSection) -> RoleSettings:
    own = _with(llm, role)
    entries = [(_with(own, entry), entry.weight) for entry in role.models] or [(own, None)]
    models = tuple(
        ModelSettings(section, _model(section, name), 1.0 if weight is None else weight, section.urls != llm.urls)
        for section, weight in entries
    )
    return RoleSettings(models, role.concurrency, role.bandit)


def _with(llm: LLMSection, said: ModelSection) -> LLMSection:
    """The section with what was said instead."""
    given = {name: value for name in ModelSection.model_fields if (value := getattr(said, name)) is not None}
    for first, second in _ONE_OF:
        if first in given or second in given:
            given = {second: None, **given}
    return llm.model_copy(update=given)


def _model(llm: LLMSection, role: str) -> str:
    if llm.model is not None:
        return llm.model
    if llm.backend in ("sim", "replay"):
        return SIMULATED
    raise InputError(
        f"llm.model: is missing, and role {role!r} names no model: set llm.model, the name the server knows the model "
        f"by, or llm.roles.{role}.model"
    )
