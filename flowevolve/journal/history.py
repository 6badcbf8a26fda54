"""A run directory as the history that a resumed run goes on from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile

from flowevolve._util.errors import InputError
from flowevolve._util.logger import logger
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord, RoleReplies
from flowevolve.core.event_kinds import PhaseEnded
from flowevolve.core.events import Event
from flowevolve.core.item_ids import WorkPart
from flowevolve.core.model import (
    NO_USAGE,
    ChatReply,
    CutWhileThinkingError,
    EmbedReply,
    LLMError,
    RejectedError,
    ServerError,
    Usage,
    server_failed,
)
from flowevolve.core.payload_kinds import NotKeptError
from flowevolve.engine.recovery.recorded_replies import AnsweredCall
from flowevolve.journal.journal import EMBEDDED
from flowevolve.journal.payloads import load
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.llm.client.accounting import Spending

_FINAL: Mapping[str, type[LLMError]] = {
    kind.__name__: kind for kind in (RejectedError, ServerError, CutWhileThinkingError)
}
"""The errors that may be due to the request itself, so that a resumed run does not make it again."""


class RunHistory:
    """What a run directory tells about its run: a `flowevolve.engine.recovery.recovery.History`.

    Closing it closes ``recorded``, the directory opened for reading.

    Raises:
        InputError: if there is no run in it.
    """

    def __init__(self, recorded: RecordedRun) -> None:
        self._recorded = recorded
        last = recorded.last_event()
        if last is None:
            raise InputError(
                f"{recorded.path}: the run was killed before it did anything. Remove the directory, and start the run "
                "again"
            )
        self.last: Event = self._recorded.event(last[0])
        self.begun = any(True for _ in self._recorded.events_of(PhaseEnded))
        wanted = _Wanted()
        self._payloads = dict(self._loadable(wanted))
        self._artifacts = self._recorded.artifacts(list(wanted))

    def _loadable(self, artifacts: Mapping[str, Artifact]) -> Iterator[tuple[str, bytes]]:
        reported = set[str]()
        for name, data in self._recorded.payloads().items():
            try:
                load(data, artifacts)
            except NotKeptError as error:
                if str(error) not in reported:
                    reported.add(str(error))
                    logger().warning("payload.not_loaded", why=str(error))
            else:
                yield name, data

    def close(self) -> None:
        self._recorded.close()

    def events(self) -> Iterator[Event]:
        return takewhile(lambda event: event.seq <= self.last.seq, self._recorded.events())

    def facts(self) -> Iterator[Event | CallRecord]:
        calls = self._recorded.call_heads()
        call = next(calls, None)
        for event in self.events():
            while call is not None and call.seq < event.seq:
                yield call.record
                call = next(calls, None)
            yield event
        while call is not None:
            yield call.record
            call = next(calls, None)

    def payload(self, name: str) -> object:
        return load(self._payloads[name], self._artifacts)

    def spent(self) -> list[Spending]:
        return self._recorded.totals()

    def replies_by_role(self) -> dict[str, RoleReplies]:
        return self._recorded.replies_by_role()

    def calls(self, works: Collection[tuple[str, str]]) -> Iterator[AnsweredCall]:
        for stage, item in works:
            for call in self._recorded.calls_of(stage, item):
                reply = _reply(call)
                if reply is not None and call.messages is not None:
                    embeds = _embeds(call)
                    asked = tuple(message.content for message in call.messages) if embeds else call.messages
                    yield AnsweredCall(call.stage, WorkPart.read(call.item), call.index, asked, reply)


def _embeds(call: RecordedCall) -> bool:
    return any(message.role == EMBEDDED for message in call.messages or ())


def _reply(call: RecordedCall) -> ChatReply | EmbedReply | LLMError | None:
    """The reply or the error of a call; None if a resumed run has to make the call again, because the backend did not
    answer or was out of order, or because the texts were dropped.
    """
    if call.reply is not None and _embeds(call):
        return EmbedReply(tuple(map(tuple, json.loads(call.reply))), call.usage or NO_USAGE, call.model)
    if call.answer is not None:
        return call.answer
    return lasting_error(call.error or "", call.usage or NO_USAGE, call.model)


def lasting_error(error: str, usage: Usage, model: str) -> LLMError | None:
    """The error of a call that a resumed run does not make again; None if it does, as when the server failed.

    ``error`` is the error as it was recorded: its type, a colon and its message.
    """
    kind, _, message = error.partition(": ")
    if kind not in _FINAL:
        return None
    failure = _FINAL[kind](message, usage=usage, model=model)
    return None if server_failed(failure) else failure


class _Wanted(dict[str, Artifact]):
    """Notes which artifacts are asked for."""

    def __missing__(self, artifact_id: str) -> Artifact:
        self[artifact_id] = Artifact({artifact_id: ""})
        return self[artifact_id]
