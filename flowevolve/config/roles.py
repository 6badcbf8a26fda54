"""The roles of a run, from its configuration: each model gets its own version of the ``[llm]`` section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.llm import LLMSettings, ModelSettings, RoleSettings
from flowevolve.config.run import Config
from flowevolve.config.thinking import chat_extra, room_for_thinking

SIMULATED = "simulated"
"""The name of the simulated server's model if the configuration gives none, in replays of its runs as well."""
_BACKEND = {"backend", "base_url", "base_urls", "azure_api_version", "transport", "api_key_env", "api_key_file"}
_ONE_OF = (
    ("api_key_env", "api_key_file"),
    ("base_url", "base_urls"),
    ("base_url", "azure_api_version"),
    ("base_urls", "azure_api_version"),
    ("enable_thinking", "reasoning_effort"),
)
"""In each pair, a section that sets the first but not the second does not inherit the second."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """One model of a role. ``llm`` is the ``[llm]`` section, overridden by the settings of the role and of the model's
    entry in the role.
    """

    llm: LLMSettings
    name: str
    weight: float
    named_by: str
    """The setting that names it."""
    elsewhere: bool
    """Whether its address differs from that of ``[llm]``."""
    said_priority: bool = False
    """Whether the role, or the model's entry in it, sets ``send_priority``."""

    @property
    def must_have_list(self) -> bool:
        """Whether its server must offer a list of models, which APIs of other providers may lack."""
        return self.llm.backend not in ("openai", "litellm") and not self.elsewhere

    @property
    def must_be_listed(self) -> bool:
        """Whether its server's list of models, if any, must contain it. Azure lists models, not deployments."""
        return not self.llm.unlisted_models and self.llm.azure_api_version is None

    @property
    def chat_extra(self) -> dict[str, JSON]:
        """The fields of chat requests in addition to the usual ones."""
        return chat_extra(self.llm, self.name)

    @property
    def room_for_thinking(self) -> int:
        """How many tokens are added to token limits as room for thinking."""
        return room_for_thinking(self.llm, self.name)

    @property
    def backend(self) -> str:
        """A text that identifies its backend: models with equal ones share an open transport."""
        return self.llm.model_dump_json(include=_BACKEND)

    def served_at(self, urls: Sequence[str]) -> ResolvedModel:
        """The same model, for a run whose own servers, at these addresses, serve ``[llm]``.

        A model with an address of its own keeps it, and is sent no priorities unless its role sets ``send_priority``.
        """
        if not self.elsewhere:
            return replace(self, llm=self.llm.model_copy(update={"base_urls": tuple(urls)}))
        if self.said_priority:
            return self
        return replace(self, llm=self.llm.model_copy(update={"send_priority": False}))


@dataclass(frozen=True, slots=True)
class ResolvedRole:
    """A role: one model, or several of which each call draws one."""

    models: tuple[ResolvedModel, ...]
    concurrency: int | None
    bandit: str | None

    def served_at(self, urls: Sequence[str]) -> ResolvedRole:
        """The role with `ResolvedModel.served_at` applied to all of its models."""
        return replace(self, models=tuple(model.served_at(urls) for model in self.models))


def role_settings(config: Config, called: Iterable[str]) -> dict[str, ResolvedRole]:
    """The roles that an algorithm calls and those that the configuration adds.

    Raises:
        InputError: if a model has no name, or its thinking can't be switched as configured.
    """
    names = dict.fromkeys([*called, *config.llm.roles])
    roles = {name: _settings(config.llm, name, config.llm.roles.get(name, RoleSettings())) for name in names}
    for model in (model for role in roles.values() for model in role.models):
        chat_extra(model.llm, model.name)  # raises if thinking can't be switched as configured
    return roles


def model_names(roles: Iterable[ResolvedRole]) -> tuple[str, ...]:
    """The names of all models, each once, in the order of the roles."""
    return tuple(dict.fromkeys(model.name for role in roles for model in role.models))


def _settings(llm: LLMSettings, name: str, role: RoleSettings) -> ResolvedRole:
    own = _with(llm, role)
    key = f"llm.roles.{name}.model"
    entries = [(_with(own, entry), entry.weight, entry.send_priority, f"{key}s") for entry in role.models]
    models = tuple(
        ResolvedModel(
            section,
            _model(section, name),
            1.0 if weight is None else weight,
            named_by,
            section.urls != llm.urls,
            (role.send_priority if priority is None else priority) is not None,
        )
        for section, weight, priority, named_by in entries
        or [(own, None, None, "llm.model" if role.model is None else key)]
    )
    return ResolvedRole(models, role.concurrency, role.bandit)


def _with(llm: LLMSettings, settings: ModelSettings) -> LLMSettings:
    """The section, overridden by those of the ``settings`` that are given."""
    given = {name: value for name in ModelSettings.model_fields if (value := getattr(settings, name)) is not None}
    for first, second in _ONE_OF:
        if first in given or second in given:
            given = {second: None, **given}
    return llm.model_copy(update=given)


def _model(llm: LLMSettings, role: str) -> str:
    if llm.model is not None:
        return llm.model
    if llm.backend in SIMULATED_BACKENDS:
        return SIMULATED
    also = f", and so is llm.roles.{role}.model; set one of them" if llm.roles else "; set it"
    raise InputError(f"llm.model is missing{also} to the name that the server knows the model by")
