"""Which calls of work that was under way are answered from the journal, and which are made again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import NO_USAGE, ChatReply, ChatRequest, Message, Usage
from flowevolve.journal.history import RunHistory
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory

PAID = Usage(9, 4)


def answered(tmp_path: Path, outcome: ChatReply | str, usage: Usage = NO_USAGE) -> list[tuple[str, str, Usage]]:
    """What the journal answers a call with that had this reply or error: its kind, its text, and its tokens."""
    path = tmp_path / "run"
    request = ChatRequest("m", (Message("user", "hello"),))
    reply, error = (outcome, None) if isinstance(outcome, ChatReply) else (None, outcome)
    call = CallRecord("task", CallScope("screen", "3", "c1", 2, 0), request, reply, error, 1, 0.0, 0.5, 1.0, usage)
    with closing(RunDirectory(path, {})) as directory:
        directory.event(Event(0, 0.0, "test.begun", {}))
        directory.call(call)
    with closing(RunHistory(RecordedRun(path))) as history:
        replies = [found.reply for found in history.calls([("screen", "3")])]
    return [
        (type(each).__name__, each.text if isinstance(each, ChatReply) else str(each), each.usage) for each in replies
    ]


def test_a_reply_is_used_again(tmp_path: Path) -> None:
    assert answered(tmp_path, ChatReply("hi", PAID, model="m")) == [("ChatReply", "hi", PAID)]


def test_so_is_a_failure_that_was_due_to_the_request(tmp_path: Path) -> None:
    said = "HTTP 400: too long"
    assert answered(tmp_path, f"RejectedError: {said}") == [("RejectedError", said, NO_USAGE)]


def test_so_is_an_answer_of_no_use_that_was_paid_for(tmp_path: Path) -> None:
    said = "the answer has no text"
    assert answered(tmp_path, f"ServerError: {said}", PAID) == [("ServerError", said, PAID)]


def test_what_failed_as_the_server_was_out_of_order_is_asked_again(tmp_path: Path) -> None:
    assert answered(tmp_path, "ServerError: HTTP 500: out of order") == []


def test_so_is_what_it_did_not_answer(tmp_path: Path) -> None:
    assert answered(tmp_path, "UnreachableError: no connection") == []
