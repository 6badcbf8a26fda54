"""The ``[llm]`` section of a configuration: backends, roles, models, prices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, FilePath, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from flowevolve._util.secrets import AZURE_VARIABLE, KEY_PLACE, key_among, key_in_path
from flowevolve._util.settings import Settings
from flowevolve.config.backends import known_backend

_KEY_IN_PATH = "the address seems to have a key in its path; write '{place}' there instead"


def _plain_address(url: str) -> str:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise PydanticCustomError("secret", "the address must not have a user or a password")
    if parts.query or parts.fragment:
        raise PydanticCustomError("secret", "the address must end before its '?' or '#', where a key might stand")
    if key_in_path(parts.path):
        raise PydanticCustomError("secret", _KEY_IN_PATH, {"place": KEY_PLACE})
    if KEY_PLACE in parts.netloc:
        raise ValueError(f"the address has {KEY_PLACE} in its host, but a key may only stand in the path")
    for path in ("/chat/completions", "/completions", "/models"):
        if parts.path.rstrip("/").endswith(path):
            raise ValueError(f"the address is that of one function of the API; leave out {path} at its end")
    return url


def _over_http(url: str) -> str:
    if _is_address(url):
        return url
    if any(mark in url for mark in "@?#"):  # a ValueError shows the URL, and there may be a key next to these
        raise PydanticCustomError("secret", "this is no address of a server, and may hold a key")
    raise ValueError(
        "this is no address of a server; give one such as http://localhost:8000/v1, with a port up to 65535"
    )


def _is_address(url: str) -> bool:
    try:
        address = urlsplit(url)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _without_key(settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
    name = key_among(settings)
    if name is not None:
        raise PydanticCustomError("secret", "{name} seems to be a key", {"name": repr(name)})
    return settings


def _azure_version(version: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}(-preview)?", version, re.ASCII):
        raise ValueError("a version of Azure's API is a date, such as 2024-10-21 or 2024-10-01-preview")
    return version


Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]
"""The name of an environment variable, in capitals, so that a key that was put there by mistake is refused."""
URL = Annotated[str, AfterValidator(_over_http), AfterValidator(_plain_address)]
Keyless = Annotated[dict[str, JsonValue], AfterValidator(_without_key)]
"""Settings that are passed on unchanged and kept with the run, and so must not contain a key."""
TransportName = Literal["openai", "aiohttp"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
WhatToDoWithThinking = Literal["strip", "keep"]


class EndpointsSettings(Settings):
    """The addresses of servers with an OpenAI-compatible API."""

    base_url: URL | None = None
    base_urls: tuple[URL, ...] | None = Field(default=None, min_length=1)
    """Instead of ``base_url``: several endpoints that serve the same models; requests are shared out among them."""
    azure_api_version: Annotated[str, AfterValidator(_azure_version)] | None = None
    """If set, the addresses are endpoints of Azure resources, with deployments as models and Azure's API."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.base_url is not None and self.base_urls is not None:
            raise ValueError("base_url and base_urls are both given; leave out one of them")
        return self

    @property
    def urls(self) -> tuple[str, ...]:
        """All addresses; empty if none is given."""
        if self.base_urls is not None:
            return self.base_urls
        return () if self.base_url is None else (self.base_url,)


class ModelSettings(EndpointsSettings):
    """A model of a role; settings that are left out are those of the role."""

    transport: TransportName | None = None
    api_key_env: Variable | None = None
    api_key_file: FilePath | None = None
    model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, gt=0)
    timeout_seconds: float | None = Field(default=None, gt=0)
    send_seed: bool | None = None
    send_priority: bool | None = None
    stream: bool | None = None
    retries: int | None = Field(default=None, ge=0)
    thinking: WhatToDoWithThinking | None = None
    enable_thinking: bool | None = None
    reasoning_effort: Effort | None = None
    thinking_tokens: int | None = Field(default=None, ge=0)
    extra: Keyless | None = None


class EnsembleEntry(ModelSettings):
    """One of several models of a role."""

    model: str
    weight: float | None = Field(default=None, gt=0)
    """How often it is drawn, relative to the others; 1 if left out. Can't be combined with a bandit."""


class RoleSettings(ModelSettings):
    """One role of the LLM layer; settings that are left out are those of ``[llm]``."""

    concurrency: int | None = Field(default=None, gt=0)
    """The most requests of this role in flight at once, within the limit of ``[llm]``."""
    models: tuple[EnsembleEntry, ...] = ()
    """Several models, of which each call draws one."""
    bandit: str | None = None
    """The name of a bandit (``ucb``), which draws models by the outcomes of earlier calls instead of by weight."""

    @model_validator(mode="before")
    @classmethod
    def _model_alone(cls, given: object) -> object:
        """A plain string is the model's name."""
        return {"model": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _draws(self) -> RoleSettings:
        if self.bandit is not None:
            names = [entry.model for entry in self.models]
            if len(set(names)) < max(2, len(names)):
                raise ValueError("a bandit needs at least two models, each with a name of its own")
            if any(entry.weight is not None for entry in self.models):
                raise ValueError(
                    "a bandit draws models by the outcomes of their calls; leave out either the weights or the bandit"
                )
        return self


Dollars = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class PriceSettings(Settings):
    """Dollars per million tokens."""

    input: Dollars
    cached_input: Dollars | None = None
    output: Dollars


class CacheSettings(Settings):
    path: Path | None = None
    """The file of the response cache, created if missing; several runs may share it at once. Without it, no cache."""


_OF_REAL_SERVERS = ("base_url", "base_urls", "azure_api_version", "api_key_env", "api_key_file")


class LLMSettings(EndpointsSettings):
    backend: Annotated[str, AfterValidator(known_backend)] = "sim"
    """``sim``: the simulated server inside this process. ``openai``: any OpenAI-compatible endpoint. ``vllm``: the vLLM
    at ``base_url``, or several at ``base_urls``; without either, one that is started for the run. ``litellm``: any
    model that LiteLLM knows by its name (``anthropic/…``, ``gemini/…``, ``bedrock/…``). ``replay``: the replies of a
    recorded run; only `flowevolve.replay` sets it. Any other name is that of a plug-in's backend.
    """
    settings: Keyless = Field(default_factory=dict)
    """The settings of a plug-in's backend."""
    transport: TransportName = "openai"
    """What carries requests to an endpoint: OpenAI's official SDK, or aiohttp alone, which takes much less CPU."""
    api_key_env: Variable | None = None
    """The environment variable that holds the key. By default ``AZURE_OPENAI_API_KEY`` is read if ``azure_api_version``
    is set, and ``OPENAI_API_KEY`` for OpenAI's own servers; other servers get no key.
    """
    api_key_file: FilePath | None = None
    """A file that holds the key, instead of the environment."""
    model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, gt=0)
    timeout_seconds: float = Field(default=600.0, gt=0)
    """The time limit of one attempt at one call."""
    stream: bool = False
    """Have answers sent piece by piece, which `idle_seconds` needs; replies are the same."""
    max_reply_bytes: int = Field(default=32 * 2**20, gt=0)
    """The most bytes that the body of an answer may have after decompression."""
    idle_seconds: float | None = Field(default=None, gt=0)
    """How long a server may fall silent in the middle of an answer; `timeout_seconds` still applies."""
    thinking: WhatToDoWithThinking = "strip"
    """What to do with thinking in the text of a reply: ``strip`` it, so that only the answer is read, or ``keep`` the
    text as received. What is stripped stays in the journal.
    """
    enable_thinking: bool | None = None
    """Switch thinking on or off, with the switch of the model's family; by default the model decides."""
    reasoning_effort: Effort | None = None
    """How much a model thinks, if it has levels of effort, such as OpenAI's and gpt-oss."""
    thinking_tokens: int = Field(default=8192, ge=0)
    """Added to the token limit of every call to a model that thinks, so that the limit applies to the answer alone."""
    patience_seconds: float = Field(default=300.0, ge=0)
    """How long a backend may give no answer at all before the run ends."""
    concurrency: int = Field(default=64, gt=0)
    """The most requests in flight at once, over all stages; ``scheduler.admission`` may allow fewer."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """This and ``requests_per_minute`` limit each model, in addition to the limits that are learnt from the server."""
    retries: int = Field(default=1, ge=0)
    """How often the model is asked again after a reply that can't be read, with the error explained to it."""
    hedge: float = Field(default=0.0, ge=0, le=0.5)
    """For up to this share of calls, a second request is sent if the first is overdue while its item waits; 0: none."""
    unlisted_models: bool = False
    """The endpoints also serve models that their lists leave out, so an unlisted model is no error before a run."""
    send_seed: bool = True
    send_priority: bool = False
    """For servers that schedule by priority (vLLM with ``--scheduling-policy priority``)."""
    extra: Keyless = Field(default_factory=dict)
    """Added to every request's body."""
    roles: dict[str, RoleSettings] = Field(default_factory=dict)
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    """Prices by model name."""
    prices_file: Path | None = None
    """A file with more prices, in tables by model name; ``prices`` takes precedence."""
    cache: CacheSettings = CacheSettings()

    @model_validator(mode="after")
    def _needs(self) -> LLMSettings:
        named = None if "backend" in self.model_fields_set else self._names_a_backend()
        if named is not None:
            raise ValueError(
                f"backend is missing, though {named} is given; set it to 'openai' for a server with OpenAI's API, to "
                "'vllm' or 'litellm', or to 'sim' to have answers simulated"
            )
        if self.idle_seconds is not None and not self.stream:
            raise ValueError("idle_seconds limits the time between pieces of an answer, so set stream = true as well")
        if self.azure_api_version is not None and not self.urls:
            raise ValueError("azure_api_version needs base_url, the address of the Azure resource")
        return self

    @property
    def key_variable(self) -> str | None:
        """The environment variable that is given for the key, or else Azure's if it is needed. None: only OpenAI's own
        servers get a key, from ``OPENAI_API_KEY``.
        """
        in_azure = self.azure_api_version is not None and self.api_key_file is None
        return self.api_key_env or (AZURE_VARIABLE if in_azure else None)

    def _names_a_backend(self) -> str | None:
        """The first given setting that only a real model can use; None if there is none.

        The models of roles don't count: simulated ones may have names, so that they can be told apart.
        """
        if self.model is not None:
            return "model"
        sections = [("", self), *((f"roles.{name}.", role) for name, role in self.roles.items())]
        return next(
            (f"{path}{name}" for path, section in sections for name in _OF_REAL_SERVERS if getattr(section, name)), None
        )
