"""One model of a role, with its backend and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallScope
from flowevolve.core.model import Transport
from flowevolve.llm.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Model:
    """A model on a backend, and the settings its requests are made with.

    A role is one of these, or a `flowevolve.llm.client.ensemble.Ensemble` of several.
    """

    transport: Transport
    name: str
    temperature: float | None = None
    max_tokens: int | None = None
    thinking_tokens: int = 0
    """Added to every token limit, those that calls set themselves included, so that the limit is left to the answer."""
    timeout_seconds: float = 600.0
    """Time limit of one attempt, from sending the request to the end of the answer."""
    send_seed: bool = True
    send_priority: bool = False
    """Send `flowevolve.llm.client.pending_call.server_priority`. Servers without priority scheduling reject it."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further fields of a request's body."""
    chat_extra: Mapping[str, JSON] | None = None
    """The further fields of chats, if they differ from ``extra``."""
    stream: bool = False
    idle_seconds: float | None = None
    """As in `flowevolve.core.model.ChatRequest`."""
    retries: int = 0
    """How often the model is asked again if a reply can't be read. Failed calls are retried independently."""
    scheduler: Scheduler | None = None
    """Bounds the requests in flight of its role, within the bound of the whole run."""
    keep_thinking: bool = False
    """Leave the model's thinking in the text of replies, if its server sends both as one text."""
    fails_if_cut: bool = True
    """Whether a call fails if its tokens ran out before the answer began; otherwise its answer is empty."""
    named_by: str = "model"
    """The setting that names it, for messages."""
    must_be_listed: bool = True
    """Whether a model missing from the backend's list of models is an error. Some lists are incomplete."""
    must_have_list: bool = True
    """Whether it is an error if the backend has no list of models. Some remote APIs have none."""

    @property
    def members(self) -> tuple[Model, ...]:
        """The models of a role that is only this one."""
        return (self,)

    def limit(self, max_tokens: int | None) -> int | None:
        """The token limit to send for a call that sets ``max_tokens``, or for one that sets none."""
        limit = self.max_tokens if max_tokens is None else max_tokens
        return None if limit is None else limit + self.thinking_tokens

    def draw(self, run_seed: int, scope: CallScope) -> Model:
        """The model for a call: this one."""
        return self
