"""Streamed answers: server-sent events, joined into the body that an answer without streaming would have.

Servers differ, so this is lenient: usage may come in any event or not at all, ``[DONE]`` may be missing, and a server
that can't stream may send the whole answer at once. Lines end with LF or CR LF.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from math import inf

import anyio
import anyio.lowlevel

from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, ServerError, UnreachableError
from flowevolve.llm.transports import failures, wire
from flowevolve.llm.transports.bounded import DEFAULT_BOUND, ReplyBound, values_in

REST_SECONDS = 1.0
"""How long to wait after ``[DONE]`` for the end of the body, so that the connection can be used again."""

_STEP = 2**14
"""The most bytes that are processed before other tasks get a turn."""
_FIELDS = (b":", b"event:", b"id:", b"retry:")
"""The beginnings of lines that are ignored: comments, and fields without a part of the answer."""


async def read_reply(
    pieces: AsyncIterator[bytes],
    request: ChatRequest,
    headers: Mapping[str, str] | None = None,
    *,
    bound: ReplyBound = DEFAULT_BOUND,
) -> ChatReply:
    """The reply in the pieces of a body, which are read to the end. The caller closes the response.

    Raises:
        UnreachableError: if the body ends before the answer does, or ``idle_seconds`` pass without a piece.
        RejectedError: if the answer exceeds the bound.
        LLMError: if the server reports an error in the middle of the answer, or sends something other than an answer.
    """
    answer = StreamedAnswer(bound)
    with anyio.CancelScope() as patience:
        async for piece in pieces:
            patience.deadline = inf
            for start in range(0, len(piece), _STEP):
                if start:
                    await anyio.lowlevel.checkpoint()
                answer.feed(piece[start : start + _STEP])
            if answer.done:
                break
            if request.idle_seconds is not None:
                patience.deadline = anyio.current_time() + request.idle_seconds
    if patience.cancelled_caught:
        raise UnreachableError(f"the answer broke off: nothing more came for {request.idle_seconds:g} s")
    if answer.done:
        with suppress(LLMError):
            async with failures.limited(REST_SECONDS):
                async for _ in pieces:
                    pass
    return answer.reply(request.model, headers)


class StreamedAnswer:
    """Collects the bytes of an answer's body, which may be cut anywhere."""

    def __init__(self, bound: ReplyBound = DEFAULT_BOUND) -> None:
        self.done = False
        """Whether the server has sent ``[DONE]``."""
        self._bound = bound
        self._lines = 0
        """The number of lines so far."""
        self._line = bytearray()
        self._data: list[bytes] = []
        self._other = bytearray()
        self._last = b""
        self._texts: list[str] | None = None
        self._thoughts: list[str] = []
        self._finish_reason: JSON = None
        self._logprobs: JSON = None
        self._values = 0
        """How many values the events with log-probabilities had."""
        self._usage: JSON = None
        self._model: JSON = None

    def feed(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            LLMError: if they report an error.
            ServerError: if an event breaks the API's contract.
            RejectedError: if the answer so far exceeds the bound.
        """
        rest, *lines = piece.split(b"\n")
        self._line += rest
        self._lines += len(lines)
        if self._lines > self._bound.most_parts:
            raise self._bound.error(f"has more than {self._bound.most_parts} lines")
        for line in lines:
            self._end_line()
            self._line += line

    def reply(self, model: str, headers: Mapping[str, str] | None = None) -> ChatReply:
        """The reply, once all bytes were fed; ``model`` is the requested one.

        Raises:
            UnreachableError: if the end of the answer is missing.
            LLMError: as `feed`.
        """
        self._end_line()
        self._end_event()
        if not self._last:  # no event at all: an answer that came at once
            return wire.chat_reply(bytes(self._other).removesuffix(b"\n"), model, headers, bound=self._bound)
        if not self.done and self._finish_reason is None:
            raise UnreachableError("the answer broke off: the server closed the connection before its end")
        text = None if self._texts is None else "".join(self._texts)
        message: dict[str, JSON] = {"content": text, "reasoning": "".join(self._thoughts)}
        choice: JSON = {"message": message, "finish_reason": self._finish_reason, "logprobs": self._logprobs}
        begun = self._texts is not None or any(self._thoughts) or self._finish_reason is not None
        answer: dict[str, JSON] = {"choices": [choice] if begun else [], "usage": self._usage, "model": self._model}
        return wire.reply_in(answer, model, self._last, headers, bound=self._bound)

    def _end_line(self) -> None:
        line = bytes(self._line).removesuffix(b"\r")
        self._line.clear()
        if line.startswith(b"data:"):
            self._data.append(line[5:].strip())
        elif not line:
            self._end_event()
        elif not line.startswith(_FIELDS):
            self._other += line + b"\n"

    def _end_event(self) -> None:
        data, self._data = b"\n".join(self._data), []
        if data == b"[DONE]":
            self.done = True
            self._last = self._last or data
        elif data and not self.done:
            self._last = data
            self._take(failures.decode(data, self._bound))

    def _take(self, event: JSON) -> None:
        if not isinstance(event, dict):
            raise ServerError(f"a part of the answer is not a JSON object: {failures.start_of(self._last)}")
        error = wire.error_in_body(event, self._last)
        if error is not None:
            raise error
        self._usage = event.get("usage") or self._usage
        self._model = event.get("model") or self._model
        match event:
            case {"choices": list(choices)}:
                for choice in choices:
                    if isinstance(choice, dict) and choice.get("index", 0) == 0:
                        self._take_choice(choice)

    def _take_choice(self, choice: Mapping[str, JSON]) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            text = wire.text_in(delta.get("content"))
            if text is not None:
                self._texts = self._texts or []
                self._texts.append(text)
            self._thoughts.append(wire.thinking_in(delta))
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        logprobs = choice.get("logprobs")
        if logprobs is not None:
            self._keep_logprobs(logprobs)

    def _keep_logprobs(self, more: JSON) -> None:
        self._values += values_in(self._last)
        if self._values > self._bound.most_parts:
            raise self._bound.error(f"has more than {self._bound.most_parts} values")
        self._logprobs = _joined(self._logprobs, more)


def _joined(before: JSON, more: JSON) -> JSON:
    """Log-probabilities of two pieces as one: lists are appended, other values replaced."""
    if not isinstance(before, dict) or not isinstance(more, dict):
        return before if more is None else more
    joined = dict(before)
    for name, value in more.items():
        known = joined.get(name)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)  # this list is ours: it came with an earlier piece
        elif value is not None:
            joined[name] = value
    return joined
