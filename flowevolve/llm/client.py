"""The one way to call an LLM: by role, through the gate, with retries, accounted and reported.

Every call that finishes, well or badly, is added to the account and handed to the observer exactly once; a cancelled
call leaves no trace and no slot behind. What a call samples depends on the run's seed and on which work it belongs to,
never on what else is running. With a response cache, a call that it can answer takes no slot and costs nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import inf
from typing import Protocol, runtime_checkable

import anyio

from flowevolve.clock import now
from flowevolve.errors import BackendRefusedError, BackendUnreachableError, InputError
from flowevolve.llm.accounting import Account, Totals
from flowevolve.llm.cache import ResponseCache, reply_key
from flowevolve.llm.gate import Gate
from flowevolve.llm.lengths import LengthEstimates, Work
from flowevolve.llm.line import Ask
from flowevolve.llm.pace import Pace
from flowevolve.llm.retry import RetryPolicy
from flowevolve.llm.types import (
    JSON,
    ChatReply,
    ChatRequest,
    LLMError,
    Message,
    OverloadedError,
    RefusedError,
    Transport,
    UnreachableError,
    Usage,
)

CHECK_SECONDS = 30.0
"""How long `LLMClient.check` waits for one backend."""


@dataclass(frozen=True, slots=True)
class Role:
    """What stands behind a role's name: a model on a backend, and how it is asked."""

    transport: Transport
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_seconds: float = 600.0
    """For one attempt, from sending the request to the end of the answer."""
    send_seed: bool = True
    send_priority: bool = False
    """Send `server_priority`. Only for servers that schedule by it: others turn the unknown parameter down."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    stream: bool = False
    idle_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CallScope:
    """Which work an LLM call belongs to; with the run's seed it determines the call's sampling seed."""

    stage: str
    item: str
    candidate: str | None
    priority: int
    """Lower goes first."""
    index: int
    """Counts the calls of this item in this stage."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A finished call. Either ``reply`` or ``error`` is set. Times are the event loop's, in seconds.

    A cached call was never sent: it has no attempts, and ``started`` is ``finished``.
    """

    role: str
    scope: CallScope
    request: ChatRequest
    reply: ChatReply | None
    error: str | None
    attempts: int
    queued: float
    """When the call was made."""
    started: float
    """When the last attempt was sent."""
    finished: float

    @property
    def cached(self) -> bool:
        """Whether the reply came from the response cache."""
        return self.reply is not None and self.reply.cached


Observer = Callable[[CallRecord], None]
"""Called in the event loop before the call returns; must not block."""


@runtime_checkable
class Addressed(Protocol):
    """A transport that can say where its backend is."""

    @property
    def base_url(self) -> str: ...


@runtime_checkable
class Identified(Protocol):
    """A transport whose address does not say all that its replies depend on."""

    @property
    def identity(self) -> str: ...


class LLMClient:
    """Calls models by role. To be used from one event loop; transports are closed by who made them.

    Roles that share a transport share what is known of its backend: a success of one keeps the others patient.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        gate: Gate,
        retry: RetryPolicy,
        seed: int,
        observer: Observer,
        account: Account | None = None,
        cache: ResponseCache | None = None,
    ) -> None:
        self.account = account if account is not None else Account({})
        self.pace = Pace()
        self.cancelled = 0
        """Requests cancelled on the wire; what the server had written by then is not known."""
        self._lengths = LengthEstimates()
        self._roles = dict(roles)
        self._gate = gate
        self._retry = retry
        self._seed = seed
        self._observer = observer
        self._cache = cache
        # By identity: two transports to one address are two backends as far as trouble goes, and need no hash.
        self._backends = {id(role.transport): _Backend(role.transport) for role in roles.values()}

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        scope: CallScope,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> ChatReply:
        """Make one call. ``max_tokens`` and ``temperature`` override the role's own.

        Raises:
            InputError: if there is no such role.
            BackendUnreachableError: if the backend was silent for longer than the retry policy's patience.
            BackendRefusedError: if the backend will never serve this role.
            LLMError: if this one request failed for good.
            InputError: if the response cache turns out to be damaged.
        """
        settings = self._role(role)
        request = ChatRequest(
            model=settings.model,
            messages=tuple(messages),
            temperature=settings.temperature if temperature is None else temperature,
            max_tokens=settings.max_tokens if max_tokens is None else max_tokens,
            seed=call_seed(self._seed, scope) if settings.send_seed else None,
            extra=settings.extra,
            stream=settings.stream,
            idle_seconds=settings.idle_seconds,
        )
        backend = self._backends[id(settings.transport)]
        call = _Call(role, scope, request, settings, backend, queued=now())
        key = None if self._cache is None else reply_key(backend.identity, request)
        if self._cache is None or key is None:
            return await self._ask(call)
        async with self._cache.turn(key) as known:
            if known is not None:
                self._found(call, known)
                return known
            reply = await self._ask(call)
            self._cache.keep(key, reply)
            return reply

    @property
    def call_limit(self) -> int:
        """How many calls may be in flight at present."""
        return self._gate.limit

    def cost(self, role: str, usage: Usage) -> float | None:
        """Dollars for this usage of a role's model, or None if its price is unknown.

        Raises:
            InputError: if there is no such role.
        """
        return self.account.cost(self._role(role).model, usage)

    async def check(self) -> None:
        """Reach every backend and see that it serves the models asked of it; costs no tokens.

        Raises:
            BackendUnreachableError: if a backend gives no useful answer at the first try.
            BackendRefusedError: if one turns us away or does not serve a role's model.
        """
        for backend in self._backends.values():
            served = await _served_models(backend)
            for name, role in self._roles.items():
                if role.transport is backend.transport and role.model not in served:
                    raise BackendRefusedError(
                        f"{backend.where} does not serve {role.model!r}, the model of role {name!r}; "
                        f"it serves {', '.join(served) or 'nothing'}. Set the role's model to one of these, "
                        "or serve the model there"
                    )

    def _role(self, name: str) -> Role:
        try:
            return self._roles[name]
        except KeyError:
            raise InputError(f"no LLM role {name!r}; add it to the config, which has {sorted(self._roles)}") from None

    async def _ask(self, call: _Call) -> ChatReply:
        """Send the request until it is answered or there is no point in going on."""
        backend = call.backend
        while True:
            try:
                reply = await self._attempt(call)
            except LLMError as error:
                wait = self._wait_or_raise(call, error)
            else:
                backend.answered = now()
                self._learn(call, backend.answered, reply)
                self._report(call, backend.answered, reply, None)
                return reply
            await anyio.sleep(wait)

    async def _attempt(self, call: _Call) -> ChatReply:
        scope = call.scope
        ask = Ask(scope.priority, call.work.group, scope.candidate, self._lengths.expect(call.work))
        async with self._gate.slot(ask) as remaining:
            call.attempts += 1
            call.started = now()
            if call.settings.send_priority:
                call.request = replace(call.request, priority=server_priority(scope.priority, remaining))
            try:
                return await call.backend.transport.chat(call.request, timeout=call.settings.timeout_seconds)
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise

    def _learn(self, call: _Call, finished: float, reply: ChatReply) -> None:
        self._lengths.note(call.work, reply.usage.completion_tokens)
        self.pace.answered(finished - call.started, reply.usage.completion_tokens)

    def _found(self, call: _Call, reply: ChatReply) -> None:
        """Account and report a call that the response cache answered."""
        self._lengths.note(call.work, reply.usage.completion_tokens)
        call.started = now()
        self._report(call, call.started, reply, None)

    def _wait_or_raise(self, call: _Call, error: LLMError) -> float:
        """Seconds to wait before the next attempt; if there is to be none, what the caller should see is raised."""
        time = now()
        silent_seconds = call.note_failure(error, time)
        if isinstance(error, OverloadedError):
            self.pace.refused()
        wait = self._retry.decide(
            error,
            call.failures[type(error)],
            silent_seconds,
            random.Random(call_seed(self._seed, call.scope) + call.attempts),
            answers_others=call.backend.answered > call.started,
        )
        if wait is not None:
            return wait
        self._report(call, time, None, error)
        match error:
            case RefusedError():
                raise _refused(call, error) from error
            case UnreachableError() | OverloadedError() if self._retry.exhausted(silent_seconds):
                raise _unreachable(call, silent_seconds, error) from error
        raise error

    def _report(self, call: _Call, finished: float, reply: ChatReply | None, error: LLMError | None) -> None:
        self.account.add(
            role=call.role,
            model=call.request.model,
            stage=call.scope.stage,
            candidate=call.scope.candidate,
            call=self._totals(call, finished, reply),
        )
        said = None if error is None else f"{type(error).__name__}: {error}"
        self._observer(
            CallRecord(
                call.role, call.scope, call.request, reply, said, call.attempts, call.queued, call.started, finished
            )
        )

    def _totals(self, call: _Call, finished: float, reply: ChatReply | None) -> Totals:
        if reply is not None and reply.cached:
            return Totals(cached_calls=1, cached_calls_tokens=reply.usage.total_tokens)
        usage = Usage() if reply is None else reply.usage
        return Totals(
            requests=1,
            failed=0 if reply is not None else 1,
            retries=call.attempts - 1,
            usage=usage,
            latency_seconds=finished - call.started,
            dollars=self.account.cost(call.request.model, usage),
        )


def server_priority(rank: int, remaining: int) -> int:
    """What a server that schedules by priority is told: rank first, then the requests its group has left, up to 999.

    Lower goes first there, too, so requests that wait in the server keep the gate's order.
    """
    return rank * 1000 + min(remaining, 999)


def call_seed(run_seed: int, scope: CallScope) -> int:
    """The sampling seed of a call, in 31 bits: the same for the same work, whatever else runs and on every machine."""
    key = f"{run_seed}\x1f{scope.stage}\x1f{scope.item}\x1f{scope.index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1


class _Backend:
    """A transport and when it last answered any call."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.where = transport.base_url if isinstance(transport, Addressed) else type(transport).__name__
        self.identity = transport.identity if isinstance(transport, Identified) else self.where
        self.answered = -inf


@dataclass(slots=True)
class _Call:
    """A call under way."""

    role: str
    scope: CallScope
    request: ChatRequest
    settings: Role
    backend: _Backend
    queued: float
    started: float = 0.0
    attempts: int = 0
    first_failure: float | None = None
    failures: dict[type[LLMError], int] = field(default_factory=dict)
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        self.work = Work.of(self.role, self.scope.stage, self.scope.item)

    def note_failure(self, error: LLMError, now: float) -> float:
        """Count it; returns for how many seconds the backend has been silent, as far as this call can tell."""
        self.failures[type(error)] = self.failures.get(type(error), 0) + 1
        if self.first_failure is None:
            self.first_failure = now
        return now - max(self.first_failure, self.backend.answered)


async def _served_models(backend: _Backend) -> tuple[str, ...]:
    try:
        with anyio.fail_after(CHECK_SECONDS):
            return await backend.transport.models()
    except RefusedError as error:
        raise BackendRefusedError(
            f"{backend.where} turned the request for its models away: {error}. "
            "Check the API key, and the base URL (most end in /v1)"
        ) from error
    except (LLMError, TimeoutError) as error:
        said = str(error) or f"nothing came back in {CHECK_SECONDS:.0f} s"
        raise BackendUnreachableError(
            f"{backend.where} can't be used: {said}. Start the server, or correct the base URL in the config"
        ) from error


def _refused(call: _Call, error: RefusedError) -> BackendRefusedError:
    return BackendRefusedError(
        f"{call.backend.where} refuses to serve model {call.request.model!r} (role {call.role!r}): {error}. "
        "Check the role's model, the API key and the base URL in the config"
    )


def _unreachable(call: _Call, silent_seconds: float, error: LLMError) -> BackendUnreachableError:
    return BackendUnreachableError(
        f"{call.backend.where} has given no answer for {silent_seconds:.0f} s and {call.attempts} attempts "
        f"(role {call.role!r}, model {call.request.model!r}); the last time: {error}. "
        "Start the server again or correct the base URL; to wait longer, raise patience_seconds"
    )
