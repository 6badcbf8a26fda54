"""What flows between the engine and an LLM backend: requests, replies, usage and errors.

Transports translate these to and from a wire format and know nothing else; whether a failed call is retried is
decided in one place, `flowevolve.llm.client`, from the error's class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]

Speaker = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Speaker
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat completion to make. Times are in seconds, lengths in tokens."""

    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    priority: int | None = None
    """Passed to servers that understand it (vLLM's priority scheduling: lower goes first)."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Added to the request's body as it is."""
    stream: bool = False
    """Have the answer sent piece by piece. The reply is the same."""
    idle_seconds: float | None = None
    """With ``stream``: how long the server may fall silent once it has begun to answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call or the sum of several. ``cached_tokens`` is the part of the prompt served from a cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A finished chat completion."""

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"
    model: str = ""
    cached: bool = False
    """Whether it came from the response cache (`flowevolve.llm.cache`); ``usage`` is then what it cost back then."""
    logprobs: JSON = None
    """As the server sent them, where ``extra`` asks for them; those of a stream in one piece."""

    @property
    def paid(self) -> Usage:
        """What this call itself cost: nothing if the reply came from the response cache."""
        return Usage() if self.cached else self.usage


class LLMError(Exception):
    """A chat call failed. ``status`` is the HTTP status where there was one."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds the server asked to wait, where it did."""


class UnreachableError(LLMError):
    """No connection, a reset, or an answer that never came: the server may be gone. Retried until patience ends."""


class OverloadedError(LLMError):
    """429, or 503: the server is there and asks for less. Retried after ``retry_after`` or a backoff."""


class ServerError(LLMError):
    """Another 5xx, or a body that is not what the API promises. Retried a few times."""


class RefusedError(LLMError):
    """Wrong model, bad key, no such endpoint: no request like this will ever be served. Ends the run."""


class RejectedError(LLMError):
    """This one request is bad (prompt too long, parameter out of range). Not retried; the caller decides."""


@runtime_checkable
class Transport(Protocol):
    """Carries requests to one backend. Implementations are safe to use from many tasks of one event loop."""

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, without retries. Cancelling it closes the request on the wire.

        Raises:
            LLMError: one of the subclasses above; ``UnreachableError`` when ``timeout`` seconds pass, or the request's
                ``idle_seconds``.
        """
        ...

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves.

        Raises:
            LLMError: as ``chat``.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...
