"""The only way to call an LLM: by role, with concurrency and rate limits, retries, a cache and accounting.

Every call that finishes, with a reply or an error, is added to the account and passed to the observer exactly once. A
cancelled call is not reported and frees what it held. A call's sampling seed depends on the run's seed and on the work
that the call belongs to, never on what else is running. A call that the response cache can answer waits for no limit
and costs nothing.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import anyio

from flowevolve._util.clock import now
from flowevolve._util.errors import BackendRefusedError, InputError
from flowevolve._util.logger import logging_notes
from flowevolve._util.tasks import Pulse
from flowevolve._util.waits import Wait
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.calls import NOBODY, CallScope, Observer, Payer, call_seed
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    CutWhileThinkingError,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    OverloadedError,
    R,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
    as_messages,
)
from flowevolve.core.server_event_kinds import UsageEstimated
from flowevolve.llm.client import outages
from flowevolve.llm.client.accounting import Account, Totals
from flowevolve.llm.client.answer_lengths import LengthEstimates
from flowevolve.llm.client.cache import ResponseCache, reply_key
from flowevolve.llm.client.hedging import Hedging
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.pending_call import Backend, FailedCalls, PendingCall, PendingChat, PendingEmbed
from flowevolve.llm.client.reachability import check_models, is_alive
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.response_times import ResponseTimes
from flowevolve.llm.scheduling.scheduler import Scheduler

FAILURES_BEFORE_GIVING_UP = 10
"""The run ends after this many failed calls of a role that has never been answered."""
EMBED_BATCH = 128
"""The most texts in one request for embeddings."""
MAX_UNANSWERED_IN_A_ROW = 3
"""After this many calls in a row without an answer, a server counts as gone even if it still lists its models."""


class LLMClient:
    """Calls models by role, from one event loop. It does not close the transports: whoever made them does.

    Roles that share a transport share the record of when its backend last answered, so that an answer to one role
    renews the patience of the others. For calls that end in server errors, only answers of the same model count.
    ``unanswered`` is fired whenever an attempt got no answer.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        scheduler: Scheduler,
        retry: RetryPolicy,
        seed: int,
        observer: Observer,
        account: Account | None = None,
        cache: ResponseCache | None = None,
        limits: Limits | None = None,
        hedging: Hedging | None = None,
        *,
        log: Log = log_nothing,
        unanswered: Pulse | None = None,
    ) -> None:
        self.account = account if account is not None else Account({})
        self.response_times = ResponseTimes()
        self.cancelled = 0
        """Requests that were cancelled in flight; how many tokens they had used by then is not known."""
        self._lengths = LengthEstimates()
        self._roles = dict(roles)
        self._scheduler = scheduler
        self._retry = retry
        self._seed = seed
        self._observer = observer
        self._cache = cache
        self._limits = limits if limits is not None else Limits(scheduler, longest_pause=retry.patience_seconds)
        self._hedging = hedging
        self._log = log
        self._unanswered = unanswered if unanswered is not None else Pulse()
        self._failures: defaultdict[str, FailedCalls] = defaultdict(FailedCalls)
        """By role: the calls that were answered and yet failed, as long as none has succeeded."""
        self._answered: set[str] = set()
        """Roles with at least one successful call."""
        self._uncounted: set[str] = set()
        """Models whose server left out token counts; each is reported once."""
        # Keyed by identity, as transports need not be hashable; two transports to one address are two backends.
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
        payer: Payer = NOBODY,
    ) -> ChatReply:
        """Make one call. ``max_tokens`` and ``temperature`` override the role's own.

        ``payer`` is asked before each attempt is sent, and told what the call was billed for, whether it was answered
        or failed for good.

        Raises:
            OverBudgetError: if the payer has nothing left; it is first told what failed attempts were billed for.
            InputError: if there is no such role.
            BackendUnreachableError: if the backend gave no answer for longer than the retry policy's patience.
            BackendRefusedError: if the backend will never serve this role.
            LLMError: if this one request failed for good.
            InputError: if the response cache is damaged.
        """
        model = self._role(role).draw(self._seed, scope)
        request = ChatRequest(
            model=model.name,
            messages=as_messages(messages),
            temperature=model.temperature if temperature is None else temperature,
            max_tokens=model.limit(max_tokens),
            seed=call_seed(self._seed, scope) if model.send_seed else None,
            extra=model.extra if model.chat_extra is None else model.chat_extra,
            stream=model.stream,
            idle_seconds=model.idle_seconds,
        )
        backend = self._backends[id(model.transport)]
        call = PendingChat(role, scope, request, model, backend, backend.chats[model.name], now(), payer)
        identity = f"{backend.identity} with thinking" if model.keep_thinking else backend.identity
        key = None if self._cache is None else reply_key(identity, request)
        if self._cache is None or key is None:
            return await self._send_with_retries(call)
        async with self._cache.single_flight(key) as cached:
            if cached is not None:
                self._report_cached(call, cached)
                return cached
            reply = await self._send_with_retries(call)
            self._cache.keep(key, reply)
            return reply

    async def embed(self, role: str, texts: Sequence[str], *, scope: CallScope, payer: Payer = NOBODY) -> EmbedReply:
        """Turn from one to `EMBED_BATCH` texts into vectors in one call. Embeddings are not cached.

        ``payer`` is as in `chat`.

        Raises:
            InputError: if there is no such role, or it has several models, whose vectors can't be compared.
            BackendUnreachableError, BackendRefusedError, LLMError, OverBudgetError: as `chat`.
        """
        model = self._embedding_model(role)
        backend = self._backends[id(model.transport)]
        request = EmbedRequest(model.name, tuple(texts), model.extra)
        answers = backend.embeddings[model.name]
        return await self._send_with_retries(PendingEmbed(role, scope, request, model, backend, answers, now(), payer))

    @property
    def call_limit(self) -> int:
        """How many calls may be in flight at present."""
        return self._scheduler.limit

    async def check(self, note: Callable[[str], None] | None = None) -> None:
        """Check that every backend can be reached and serves its roles' models. This uses no tokens.

        ``note`` is called with a line for each thing that can't be known before the first call; by default it logs it.

        Raises:
            BackendUnreachableError: if a backend gives no useful answer; there is no second try.
            BackendRefusedError: if a backend refuses us, or does not list a model that must be listed.
        """
        members = [member for role in self._roles.values() for member in role.members]
        for backend in self._backends.values():
            asked = [member for member in members if member.transport is backend.transport]
            await check_models(backend.transport, backend.where, asked, note or logging_notes("models.unknown"))

    def retries(self, role: str) -> int:
        """How often this role is asked again if a reply can't be read."""
        return max(member.retries for member in self._role(role).members)

    def _role(self, name: str) -> Role:
        try:
            return self._roles[name]
        except KeyError:
            known = ", ".join(sorted(self._roles)) or "none"
            raise InputError(
                f"there is no LLM role {name!r}; add [llm.roles.{name}] to the config, or name a role that it "
                f"has: {known}"
            ) from None

    def _embedding_model(self, name: str) -> Model:
        role = self._role(name)
        if not isinstance(role, Model):
            raise InputError(
                f"LLM role {name!r} has several models, whose vectors can't be compared; give it one model"
            )
        return role

    async def _send_with_retries(self, call: PendingCall[R]) -> R:
        """Send the request, with retries, until it is answered or the retry policy gives up."""
        backend = call.backend
        while True:
            try:
                reply = await self._attempt(call, self._hedging)
            except OverBudgetError:
                if call.last_failure is not None:
                    self._report(call, now(), None, call.last_failure)
                raise
            except LLMError as error:
                wait = await self._wait_or_raise(call, error)
            else:
                backend.note_answer(now())
                call.answers.note_answer(backend.answered)
                call.answers.last = call
                self._learn(call, backend.answered, reply)
                self._note_estimate(call, reply)
                reply = self._billed(call, reply)
                self._raise_if_cut(call, reply)
                self._answered.add(call.role)
                self._report(call, backend.answered, reply, None)
                return reply
            due = anyio.current_time() + wait
            with Wait("the time to ask the server again"), self._limits.repeating(call.last_failure):
                await anyio.sleep(wait)
            backend.note_wait_end(due, anyio.current_time())

    async def _attempt(self, call: PendingCall[R], hedging: Hedging | None = None) -> R:
        scope = call.scope
        ask = QueuedRequest(scope.priority, call.call_kind.group, scope.candidate, self._lengths.expect(call.call_kind))
        async with self._limits.permit(ask, call.backend.where, call.request, call.model.scheduler) as permit:
            call.payer.check()
            call.attempts += 1
            call.started = now()
            call.repeats_before = call.answers.repeats
            call.discount_wait(permit.uncounted_wait)
            try:
                return permit.answered(await call.send(ask, permit.remaining, hedging))
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise

    def _billed(self, call: PendingCall[R], reply: R) -> R:
        """The reply with the usage and the price of its whole call, failed attempts included."""
        usage = reply.usage + call.failed_usage if call.failures else reply.usage
        dollars = self.account.cost(call.request.model, usage)
        if usage is reply.usage and dollars == reply.dollars:
            return reply
        return replace(reply, usage=usage, dollars=dollars)

    def _raise_if_cut(self, call: PendingCall[R], reply: R) -> None:
        """If the model was cut off while still thinking, and the role counts that as a failure, report and raise it."""
        error = call.cut_while_thinking(reply)
        if error is not None and call.model.fails_if_cut:
            call.failed_usage = error.usage
            self._report(call, call.backend.answered, None, error)
            self._raise_if_all_fail(call, error)
            raise error

    def _raise_if_all_fail(self, call: PendingCall[R], error: LLMError) -> None:
        """Raises: BackendRefusedError if no chat of this role was ever answered, and this is one failure too many.

        Failed embeddings don't count, as the run can do without them. Nor does a resumed run end, if the role had
        answers before and all failures belong to one candidate.
        """
        if call.role in self._answered or not isinstance(call, PendingChat):
            return
        failures = self._failures[call.role]
        failures.add(call.scope)
        if failures.count < FAILURES_BEFORE_GIVING_UP:
            return
        if failures.of_one_candidate and self.account.has_answers(call.role):
            return
        raise BackendRefusedError(
            f"{call.backend.where}: each of the first {failures.count} calls of role {call.role!r} "
            f"({call.model.named_by} {call.request.model!r}) failed; the last: {error}"
        ) from error

    def _learn(self, call: PendingCall[R], finished: float, reply: R) -> None:
        self._lengths.note(call.call_kind, reply.usage.completion_tokens)
        self.response_times.answered(finished - call.started, reply.usage.completion_tokens)

    def _note_estimate(self, call: PendingCall[R], reply: R) -> None:
        """Report, once for each model, that its server leaves out token counts."""
        model = call.request.model
        if reply.estimated and model not in self._uncounted:
            self._uncounted.add(model)
            self._log(UsageEstimated(call.backend.where, model))

    def _report_cached(self, call: PendingChat, reply: ChatReply) -> None:
        """Account and report a call that the response cache answered."""
        self._lengths.note(call.call_kind, reply.usage.completion_tokens)
        call.started = now()
        self._report(call, call.started, reply, None)

    async def _wait_or_raise(self, call: PendingCall[R], error: LLMError) -> float:
        """The seconds to wait before the next attempt; if there is none, raises the error for the caller."""
        time = now()
        if isinstance(error, OverloadedError):
            self.response_times.refused()
        may_be_broken = outages.may_be_broken(call, error)
        is_down = may_be_broken and await outages.is_down(call, self._attempt)
        asked_seconds = now() - time
        # If the repeat is answered after a wait, the server may have come back since this attempt: there is one more.
        answers_nobody = is_down or (may_be_broken and call.waited_as_down)
        call.waited_as_down = is_down
        rejection = error if isinstance(error, RejectedError) else None
        if rejection is not None and answers_nobody:
            error = ServerError(f"it refuses what it answered before: {rejection}", status=rejection.status)
        call.note_failure(error, time)
        call.discount_question(asked_seconds)
        if isinstance(error, UnreachableError) or is_down:
            self._unanswered.fire()
        silent_seconds = call.silence(time)
        if self._retry.exhausted(silent_seconds) and self._may_be_slow(call, error, time):
            if await is_alive(call.backend.transport):
                call.backend.answered = now()
            silent_seconds = call.silence(now())  # another call may have been answered in the meantime
        wait = self._wait(call, error, silent_seconds, answers_nobody=answers_nobody)
        if wait is not None:
            return wait
        self._report(call, time, None, error)
        match error:
            case RefusedError():
                raise call.refused(error) from error
            case UnreachableError() | OverloadedError() if self._retry.exhausted(silent_seconds):
                raise call.unreachable(silent_seconds, error) from error
            case ServerError() if answers_nobody and rejection is not None:
                raise call.rejected(silent_seconds, rejection) from rejection
            case ServerError() if answers_nobody:
                raise call.unreachable(silent_seconds, error) from error
            case UnreachableError():
                call.backend.unanswered_in_a_row += 1
            case RejectedError() | ServerError():
                self._raise_if_all_fail(call, error)
                if may_be_broken and call.repeats_before == call.answers.repeats:
                    call.answers.failed_in_a_row += 1
        raise error

    def _wait(
        self, call: PendingCall[R], error: LLMError, silent_seconds: float, *, answers_nobody: bool
    ) -> float | None:
        answers_others = call.backend.answered > call.started
        return self._retry.decide(
            error,
            call.failures[type(error)],
            silent_seconds,
            random.Random(call_seed(self._seed, call.scope) + call.attempts),
            lost_answers=call.lost_answers if answers_others else 0,
            answers_nobody=answers_nobody,
        )

    def _may_be_slow(self, call: PendingCall[R], error: LLMError, time: float) -> bool:
        """Whether an attempt used up its whole timeout, so that the answer may just be slow and the server alive.

        A server that lists its models but answers no call is treated as gone after a few such calls in a row.
        """
        return call.timed_out(error, time) and call.backend.unanswered_in_a_row < MAX_UNANSWERED_IN_A_ROW

    def _report(self, call: PendingCall[R], finished: float, reply: R | None, error: LLMError | None) -> None:
        totals = self._totals(call, finished, reply, error)
        self.account.add(role=call.role, model=call.request.model, stage=call.scope.stage, call=totals)
        call.payer.pay(totals.usage, totals.dollars)
        self._observer(call.record(finished, reply, error))

    def _totals(self, call: PendingCall[R], finished: float, reply: R | None, error: LLMError | None) -> Totals:
        if reply is not None and reply.cached:
            return Totals(cached_calls=1, cached_calls_tokens=reply.usage.total_tokens)
        usage = call.failed_usage if reply is None else reply.usage
        cut = error if reply is None else call.cut_while_thinking(reply)
        return Totals(
            requests=1,
            failed=0 if reply is not None else 1,
            retries=call.attempts - 1,
            usage=usage,
            latency_seconds=finished - call.started,
            dollars=self.account.cost(call.request.model, usage) if reply is None else reply.dollars,
            estimated=0 if reply is None else int(reply.estimated),
            cut_while_thinking=int(isinstance(cut, CutWhileThinkingError)),
        )
