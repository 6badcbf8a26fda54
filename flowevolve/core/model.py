"""What flows between the engine and an LLM backend: requests, replies, usage and errors.

Transports only translate these to and from a wire format. Whether a failed call is retried is decided in one place,
`flowevolve.llm.client.client`, from the error's class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from flowevolve._util.json_types import JSON
from flowevolve._util.secrets import redacted
from flowevolve._util.values import value
from flowevolve.core.payload_kinds import payload

CHARS_PER_TOKEN = 4
"""The usual ratio for English text and code. It estimates tokens where no server has counted them, and turns a limit in
tokens into one in characters.
"""

Speaker = Literal["system", "user", "assistant"]


@payload
@value
class Message:
    """One message of a chat."""

    role: Speaker
    content: str


def as_messages(messages: object) -> tuple[Message, ...]:
    """The messages of a call, as the code of a stage or a task gives them.

    Raises:
        TypeError: if they are anything but a sequence of messages, such as a text or dictionaries.
    """
    if isinstance(messages, Sequence) and not isinstance(messages, str):
        found = tuple(messages)
        if all(isinstance(each, Message) for each in found):
            return found
    raise TypeError(f'a call takes messages, such as [flowevolve.Message("user", "…")], and not {messages!r:.80}')


@value
class ChatRequest:
    """One chat completion to make. Times are in seconds, lengths in tokens."""

    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    priority: int | None = None
    """For servers with priority scheduling, such as vLLM: a request with a lower number goes first."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further fields of the request's body, which override those above."""
    stream: bool = False
    """Have the answer sent piece by piece. The reply is the same."""
    idle_seconds: float | None = None
    """With ``stream``: the longest pause between two pieces before the call counts as failed."""


@payload
@value
class Usage:
    """Tokens of one call, or the sum over several. ``cached_tokens`` are prompt tokens from a cache."""

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


NO_USAGE = Usage()


@payload
@value
class ChatReply:
    """A finished chat completion."""

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"
    model: str = ""
    cached: bool = False
    """Whether it came from the response cache (`flowevolve.llm.client.cache`); ``usage`` is then that of the original
    call.
    """
    dollars: float | None = None
    """The price of the call, filled in by the client; None where the model's price is not known."""
    headers: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    """The HTTP headers of the answer (look them up in lower case); None if it did not come over HTTP."""
    logprobs: JSON = None
    """Log-probabilities as the server sent them, if ``extra`` asks for them; those of a stream are joined."""
    estimated: bool = False
    """Whether the server left out part of ``usage``, which was then estimated (`flowevolve.llm.usage`)."""
    thinking: str = ""
    """What the model thought before it answered. It is not part of ``text``, but its tokens are in ``usage``."""

    @property
    def was_cut(self) -> bool:
        """Whether the token limit cut it off."""
        return self.finish_reason == "length"

    @property
    def is_empty(self) -> bool:
        """Whether it has no text, although the token limit did not cut it off."""
        return not self.text.strip() and not self.was_cut

    @property
    def paid(self) -> Usage:
        """The tokens this call was billed for: none if the reply came from the response cache."""
        return Usage() if self.cached else self.usage


@value
class EmbedRequest:
    """A request to turn one or more texts into vectors."""

    model: str
    texts: tuple[str, ...]
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further fields of the request's body, which override those above."""


@payload
@value
class EmbedReply:
    """One vector for each text, in the order of the texts and all of the same length. Usage has only prompt tokens."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage = Usage()
    model: str = ""
    dollars: float | None = None
    """As in `ChatReply`."""
    headers: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    """As in `ChatReply`."""
    estimated: bool = False
    """As in `ChatReply`."""
    finish_reason: ClassVar[str] = "stop"
    cached: ClassVar[bool] = False

    @classmethod
    def joined(cls, parts: Sequence[EmbedReply]) -> EmbedReply:
        """Join the replies to consecutive batches of texts into one reply."""
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
        """The tokens this call was billed for: all of them, as embeddings are not cached."""
        return self.usage

    @property
    def text(self) -> str:
        """The vectors as JSON."""
        return json.dumps(self.vectors, separators=(",", ":"))


R = TypeVar("R", ChatReply, EmbedReply)


class LLMError(Exception):
    """A call failed. API keys are removed from the message.

    ``status`` and ``headers`` are those of the HTTP answer, where there was one.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        usage: Usage = NO_USAGE,
        model: str = "",
    ) -> None:
        super().__init__(redacted(message))
        self.status = status
        self.retry_after = retry_after
        """The seconds after which the server asks to be tried again; None if it does not say."""
        self.headers = headers
        self.usage = usage
        """Tokens that the server counted, and so bills, although the call failed."""
        self.model = model
        """The model that used these tokens; only set on failures that are read from a journal."""


class UnreachableError(LLMError):
    """No connection, a reset, or no answer in time: the server may be gone. Retried until the patience is used up.

    Status 408, 502, 504 or 520 to 524 means that something in front of the server (a proxy, Cloudflare) got no answer
    from it, or none in time.
    """


class OverloadedError(LLMError):
    """Status 429, 503 or 529: the server asks for fewer requests. Retried after ``retry_after`` or a backoff."""


class ServerError(LLMError):
    """Another 5xx status, or a body that breaks the API's contract. Retried a few times, with the same waits.

    If the server answered before and now fails at every call, or rejects every one, the call is retried as after an
    `UnreachableError`.
    """


NO_MODEL_LIST = (404, 405)
"""HTTP statuses of an API that does not list its models."""


class RefusedError(LLMError):
    """Wrong model, bad key or no such endpoint: the backend will never serve requests like this one. Ends the run."""


class OutOfCreditError(RefusedError):
    """The account has no money or quota left."""


class WrongAddressError(RefusedError):
    """The API is at another address, which the message names."""


class RejectedError(LLMError):
    """This one request is bad (prompt too long, parameter out of range). Not retried; the caller decides."""


class CutWhileThinkingError(LLMError):
    """The token limit was reached before the model began to answer. Not retried: it would think as long again."""


def server_failed(error: LLMError) -> bool:
    """Whether the fault was the server's, which gave no answer or was out of order, and not the request's.

    If the server billed tokens, it worked, and only its answer to this request was of no use.
    """
    match error:
        case UnreachableError() | OverloadedError():
            return True
        case ServerError():
            return not error.usage.total_tokens
        case _:
            return False


@runtime_checkable
class Transport(Protocol):
    """Carries requests to one backend. Many tasks of one event loop may use it at the same time."""

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, without retries. Cancelling it closes the request on the wire.

        Raises:
            LLMError: one of the subclasses above; ``UnreachableError`` when ``timeout`` or the request's
                ``idle_seconds`` pass.
        """

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves.

        Raises:
            LLMError: as ``chat``.
        """

    async def aclose(self) -> None:
        """Close all connections."""


@runtime_checkable
class HasBaseURL(Protocol):
    """A transport that knows the address of its backend."""

    @property
    def base_url(self) -> str: ...


@runtime_checkable
class HasIdentity(Protocol):
    """A transport whose replies depend on more than its address; `identity` says on what."""

    @property
    def identity(self) -> str: ...


class ServerTransport:
    """A transport to the one server at ``base_url`` (with its ``/v1``)."""

    def __init__(self, base_url: str, identity: str | None) -> None:
        self.base_url = base_url
        self.identity = base_url if identity is None else identity
        """What replies depend on besides the request (`HasIdentity`)."""


@runtime_checkable
class EmbeddingTransport(Protocol):
    """A transport whose backend can also embed texts."""

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Make one call, without retries. Cancelling it closes the request on the wire.

        Raises:
            LLMError: as `Transport.chat`.
        """


def embedding_transport(transport: Transport) -> EmbeddingTransport:
    """Return the transport itself, after checking that it supports embeddings.

    Raises:
        RefusedError: if it does not.
    """
    if not isinstance(transport, EmbeddingTransport):
        raise RefusedError("this kind of backend makes no embeddings")
    return transport
