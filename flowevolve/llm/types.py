"""What flows between the engine and an LLM backend: requests, replies, usage and errors.

Transports translate these to and from a wire format and know nothing else; whether a failed call is retried is
decided in one place, `flowevolve.llm.client`, from the error's class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from flowevolve.llm.keys import redacted

CHARS_PER_TOKEN = 4
"""English text in common tokenizers: how tokens are estimated where nobody has counted them."""

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
    dollars: float | None = None
    """What it cost; None where that is not known. Filled in by the client."""
    headers: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    """Of the answer, where it came over HTTP; looked up in lower case."""
    logprobs: JSON = None
    """As the server sent them, where ``extra`` asks for them; those of a stream in one piece."""
    estimated: bool = False
    """Whether ``usage`` is in part an estimate, as the server left something out (`flowevolve.llm.usage`)."""

    @property
    def paid(self) -> Usage:
        """What this call itself cost: nothing if the reply came from the response cache."""
        return Usage() if self.cached else self.usage


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to turn into vectors in one request, at least one."""

    model: str
    texts: tuple[str, ...]
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Added to the request's body as it is."""


@dataclass(frozen=True, slots=True)
class EmbedReply:
    """One vector for every text, in their order and all of one length. Its usage has prompt tokens alone."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage = Usage()
    model: str = ""
    dollars: float | None = None
    """What it cost; None where that is not known. Filled in by the client."""
    headers: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    """As a chat's."""
    estimated: bool = False
    """As a chat's."""
    finish_reason: ClassVar[str] = "stop"
    cached: ClassVar[bool] = False

    @classmethod
    def joined(cls, parts: Sequence[EmbedReply]) -> EmbedReply:
        """The replies to the parts of a list of texts as one."""
        costs = [part.dollars for part in parts if part.dollars is not None]
        return cls(
            tuple(vector for part in parts for vector in part.vectors),
            sum((part.usage for part in parts), Usage()),
            parts[0].model if parts else "",
            sum(costs) if len(costs) == len(parts) else None,
            estimated=any(part.estimated for part in parts),
        )

    @property
    def paid(self) -> Usage:
        """As a chat's: all of it, as none comes from the response cache."""
        return self.usage

    @property
    def text(self) -> str:
        """The vectors as JSON."""
        return json.dumps(self.vectors, separators=(",", ":"))


R = TypeVar("R", ChatReply, EmbedReply)


class LLMError(Exception):
    """A call failed; the message holds no API key.

    ``status`` is the HTTP status where there was one, ``headers`` are the answer's.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        usage: Usage = Usage(),
        model: str = "",
    ) -> None:
        super().__init__(redacted(message))
        self.status = status
        self.retry_after = retry_after
        """Seconds the server asked to wait, where it did."""
        self.headers = headers
        self.usage = usage
        """Tokens that the server counted, and is to be paid for, all the same."""
        self.model = model
        """The model they are to be paid for; set where a failure is read from a journal."""


class UnreachableError(LLMError):
    """No connection, a reset, or an answer that never came: the server may be gone. Retried until patience ends."""


class OverloadedError(LLMError):
    """429, 503 or 529: the server is there and asks for less. Retried after ``retry_after`` or a backoff."""


class ServerError(LLMError):
    """Another 5xx, or a body that is not what the API promises. Retried a few times, as ``OverloadedError`` is."""


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


@runtime_checkable
class Embedder(Protocol):
    """A transport whose backend makes embeddings, too."""

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Make one call, without retries. Cancelling it closes the request on the wire.

        Raises:
            LLMError: as `Transport.chat`.
        """
        ...


def embedder(transport: Transport) -> Embedder:
    """The transport, for embeddings.

    Raises:
        RefusedError: if its backend makes none.
    """
    if not isinstance(transport, Embedder):
        raise RefusedError("this kind of backend makes no embeddings")
    return transport


class UnparsableReplyError(ValueError):
    """A model's reply does not have the form it was asked for."""
