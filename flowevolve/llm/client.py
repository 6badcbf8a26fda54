"""The one way to call an LLM: by role, through the gate, with retries, accounted and reported.

Every call that finishes, well or badly, is added to the account and handed to the observer exactly once; a cancelled
call leaves no trace and no slot behind. What a call samples depends on the run's seed and on which work it belongs to,
never on what else is running. With a response cache, a call that it can answer takes no slot and costs nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio

from flowevolve.clock import now
from flowevolve.concurrency import Pulse
from flowevolve.errors import BackendRefusedError, BackendUnreachableError, InputError
from flowevolve.llm.accounting import Account, Totals
from flowevolve.llm.cache import ResponseCache, reply_key
from flowevolve.llm.calls import CallRecord, CallScope, Charge, Observer, call_seed, no_charge
from flowevolve.llm.ensemble import Models
from flowevolve.llm.gate import Gate
from flowevolve.llm.hedging import Hedging
from flowevolve.llm.lengths import LengthEstimates
from flowevolve.llm.limits import Limits
from flowevolve.llm.line import Ask
from flowevolve.llm.news import News
from flowevolve.llm.pace import Pace
from flowevolve.llm.pending import Backend, PendingCall, PendingChat, PendingEmbed
from flowevolve.llm.reach import check_models, is_alive
from flowevolve.llm.retry import RetryPolicy
from flowevolve.llm.role import Role
from flowevolve.llm.types import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    OverloadedError,
    R,
    RefusedError,
    UnreachableError,
    Usage,
)

EMBED_BATCH = 128
"""Texts in one request for embeddings, at most."""
LOST_IN_A_ROW = 3
"""So many calls given up, with none answered between them: a server counts as gone even if it tells its models."""


class LLMClient:
    """Calls models by role. To be used from one event loop; transports are closed by who made them.

    Roles that share a transport share what is known of its backend: a success of one keeps the others patient.
    ``silences`` is fired whenever an attempt got no answer.
    """

    def __init__(
        self,
        roles: Mapping[str, Models],
        gate: Gate,
        retry: RetryPolicy,
        seed: int,
        observer: Observer,
        account: Account | None = None,
        cache: ResponseCache | None = None,
        limits: Limits | None = None,
        hedging: Hedging | None = None,
        *,
        silences: Pulse | None = None,
    ) -> None:
        self.account = account if account is not None else Account({})
        self.news = News()
        """What a run's log should tell of."""
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
        self._limits = limits if limits is not None else Limits(gate, longest_pause=retry.patience_seconds)
        self._hedging = hedging
        self._silences = silences if silences is not None else Pulse()
        self._uncounted: set[str] = set()
        """Models of which a server did not say what a call took."""
        # By identity: two transports to one address are two backends as far as trouble goes, and need no hash.
        self._backends = {
            id(member.transport): Backend(member.transport) for role in roles.values() for member in role.members
        }

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        scope: CallScope,
        max_tokens: int | None = None,
        temperature: float | None = None,
        charge: Charge = no_charge,
    ) -> ChatReply:
        """Make one call. ``max_tokens`` and ``temperature`` override the role's own.

        ``charge`` is told what it was paid for, whether it was answered or failed for good.

        Raises:
            InputError: if there is no such role.
            BackendUnreachableError: if the backend was silent for longer than the retry policy's patience.
            BackendRefusedError: if the backend will never serve this role.
            LLMError: if this one request failed for good.
            InputError: if the response cache turns out to be damaged.
        """
        settings = self._role(role).draw(self._seed, scope)
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
        call = PendingChat(role, scope, request, settings, backend, now(), charge)
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

    async def embed(
        self, role: str, texts: Sequence[str], *, scope: CallScope, charge: Charge = no_charge
    ) -> EmbedReply:
        """Turn texts into vectors in one call: from one to `EMBED_BATCH` of them. Never from the cache.

        ``charge`` is told of it, as by `chat`.

        Raises:
            InputError: if there is no such role, or it can't make vectors that can be compared with each other.
            BackendUnreachableError, BackendRefusedError, LLMError: as `chat`.
        """
        settings = self._embedding_role(role)
        backend = self._backends[id(settings.transport)]
        request = EmbedRequest(settings.model, tuple(texts), settings.extra)
        return await self._ask(PendingEmbed(role, scope, request, settings, backend, now(), charge))

    @property
    def call_limit(self) -> int:
        """How many calls may be in flight at present."""
        return self._gate.limit

    async def check(self) -> None:
        """Reach every backend and see that it serves the models asked of it; costs no tokens.

        Raises:
            BackendUnreachableError: if a backend gives no useful answer at the first try.
            BackendRefusedError: if one turns us away, or does not list a role's model that must be listed.
        """
        members = [(name, member) for name, role in self._roles.items() for member in role.members]
        for backend in self._backends.values():
            asked = [(name, member) for name, member in members if member.transport is backend.transport]
            await check_models(backend.transport, backend.where, asked)

    def _role(self, name: str) -> Models:
        try:
            return self._roles[name]
        except KeyError:
            raise InputError(f"no LLM role {name!r}; add it to the config, which has {sorted(self._roles)}") from None

    def _embedding_role(self, name: str) -> Role:
        role = self._role(name)
        if not isinstance(role, Role):
            raise InputError(f"LLM role {name!r} has several models, whose vectors can't be compared: give it one")
        return role

    async def _ask(self, call: PendingCall[R]) -> R:
        """Send the request until it is answered or there is no point in going on."""
        backend = call.backend
        while True:
            try:
                reply = await self._attempt(call)
            except LLMError as error:
                wait = await self._wait_or_raise(call, error)
            else:
                backend.answered = now()
                backend.lost_in_a_row = 0
                self._learn(call, backend.answered, reply)
                self._note_estimate(call, reply)
                usage = reply.usage + call.lost
                reply = replace(reply, usage=usage, dollars=self.account.cost(call.request.model, usage))
                self._report(call, backend.answered, reply, None)
                return reply
            due = anyio.current_time() + wait
            await anyio.sleep(wait)
            backend.note_end(due, anyio.current_time())

    async def _attempt(self, call: PendingCall[R]) -> R:
        scope = call.scope
        ask = Ask(scope.priority, call.work.group, scope.candidate, self._lengths.expect(call.work))
        async with self._limits.slot(ask, call.backend.where, call.request, call.settings.gate) as turn:
            call.attempts += 1
            call.started = now()
            call.excuse(turn.excused)
            try:
                return turn.answered(await call.send(ask, turn.remaining, self._hedging))
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise

    def _learn(self, call: PendingCall[R], finished: float, reply: R) -> None:
        self._lengths.note(call.work, reply.usage.completion_tokens)
        self.pace.answered(finished - call.started, reply.usage.completion_tokens)

    def _note_estimate(self, call: PendingCall[R], reply: R) -> None:
        """Tell, once for each model, that its server does not say what calls take."""
        model = call.request.model
        if reply.estimated and model not in self._uncounted:
            self._uncounted.add(model)
            self.news.tell("usage.estimated", {"backend": call.backend.where, "model": model})

    def _found(self, call: PendingChat, reply: ChatReply) -> None:
        """Account and report a call that the response cache answered."""
        self._lengths.note(call.work, reply.usage.completion_tokens)
        call.started = now()
        self._report(call, call.started, reply, None)

    async def _wait_or_raise(self, call: PendingCall[R], error: LLMError) -> float:
        """Seconds to wait before the next attempt; if there is to be none, what the caller should see is raised."""
        time = now()
        silent_seconds = call.note_failure(error, time)
        if isinstance(error, OverloadedError):
            self.pace.refused()
        if isinstance(error, UnreachableError):
            self._silences.fire()
        if self._retry.exhausted(silent_seconds) and self._may_only_be_long(call, error, time):
            if await is_alive(call.backend.transport):
                call.backend.answered = now()
            silent_seconds = call.silence(now())  # meanwhile another call may have been answered
        wait = self._wait(call, error, silent_seconds)
        if wait is not None:
            return wait
        self._report(call, time, None, error)
        match error:
            case RefusedError():
                raise _refused(call, error) from error
            case UnreachableError() | OverloadedError() if self._retry.exhausted(silent_seconds):
                raise _unreachable(call, silent_seconds, error) from error
            case UnreachableError():
                call.backend.lost_in_a_row += 1
        raise error

    def _wait(self, call: PendingCall[R], error: LLMError, silent_seconds: float) -> float | None:
        return self._retry.decide(
            error,
            call.failures[type(error)],
            silent_seconds,
            random.Random(call_seed(self._seed, call.scope) + call.attempts),
            answers_others=call.backend.answered > call.started,
        )

    def _may_only_be_long(self, call: PendingCall[R], error: LLMError, time: float) -> bool:
        """Whether an attempt that was not answered had all its time, so that the server need not be gone.

        A server that can tell its models and answers nothing is gone all the same: some calls in a row show it.
        """
        timed_out = isinstance(error, UnreachableError) and time - call.started >= call.settings.timeout_seconds
        return timed_out and call.backend.lost_in_a_row < LOST_IN_A_ROW

    def _report(self, call: PendingCall[R], finished: float, reply: R | None, error: LLMError | None) -> None:
        totals = self._totals(call, finished, reply)
        self.account.add(
            role=call.role,
            model=call.request.model,
            stage=call.scope.stage,
            candidate=call.scope.candidate,
            call=totals,
        )
        call.charge(totals.usage, totals.dollars)
        said = None if error is None else f"{type(error).__name__}: {error}"
        self._observer(
            CallRecord(
                call.role,
                call.scope,
                call.request,
                reply,
                said,
                call.attempts,
                call.queued,
                call.started,
                finished,
                Usage() if error is None else call.lost,
            )
        )

    def _totals(self, call: PendingCall[R], finished: float, reply: R | None) -> Totals:
        if reply is not None and reply.cached:
            return Totals(cached_calls=1, cached_calls_tokens=reply.usage.total_tokens)
        usage = call.lost if reply is None else reply.usage
        return Totals(
            requests=1,
            failed=0 if reply is not None else 1,
            retries=call.attempts - 1,
            usage=usage,
            latency_seconds=finished - call.started,
            dollars=self.account.cost(call.request.model, usage) if reply is None else reply.dollars,
            estimated=0 if reply is None else int(reply.estimated),
        )


def _refused(call: PendingCall[R], error: RefusedError) -> BackendRefusedError:
    return BackendRefusedError(
        f"{call.backend.where} refuses to serve model {call.request.model!r} (role {call.role!r}): {error}. "
        "Check the role's model, the API key and the base URL in the config"
    )


def _unreachable(call: PendingCall[R], silent_seconds: float, error: LLMError) -> BackendUnreachableError:
    return BackendUnreachableError(
        f"{call.backend.where} has given no answer for {silent_seconds:.0f} s and {call.attempts} attempts "
        f"(role {call.role!r}, model {call.request.model!r}); the last time: {error}. "
        "Start the server again or correct the base URL; to wait longer, raise patience_seconds"
    )
