"""A transport of a plug-in that breaks the protocol fails its calls as a server would, and nothing else is blamed."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pytest

from flowevolve._util.errors import BackendUnreachableError
from flowevolve.core.model import ChatReply, ChatRequest, ServerError, Usage
from tests.support.scripted_llm import Rig, Scripted

pytestmark = pytest.mark.anyio


class Faulty(Scripted):
    """Does something else than answer, as often as it is told."""

    def __init__(self, *faults: object) -> None:
        super().__init__("fine")
        self.faults = list(faults)

    async def chat(self, request: ChatRequest, *, timeout: float) -> Any:
        reply = await super().chat(request, timeout=timeout)
        if not self.faults:
            return reply
        fault = self.faults.pop(0)
        if isinstance(fault, BaseException):
            raise fault
        return fault


async def test_what_its_own_code_raises_is_repeated_as_a_server_error_is() -> None:
    rig = Rig(Faulty(KeyError("choices")))
    assert (await rig.ask()).text == "fine"
    assert rig.records[0].attempts == 2


async def test_neither_does_its_own_cancelled_error_end_the_call() -> None:
    rig = Rig(Faulty(CancelledError()))
    assert (await rig.ask()).text == "fine"
    assert rig.records[0].attempts == 2


async def test_what_its_own_code_raises_again_and_again_fails_the_call_and_says_so() -> None:
    rig = Rig(Faulty(*[KeyError("choices")] * 3))
    with pytest.raises(ServerError, match=r"the backend's own code raised KeyError: 'choices' \(.*, line \d+\)"):
        await rig.ask()
    assert "KeyError: 'choices'" in str(rig.records[0].error)


@pytest.mark.parametrize("wrong", [None, "fine"], ids=["nothing", "a text"])
async def test_a_reply_of_another_type_is_an_error(wrong: object) -> None:
    rig = Rig(Faulty(*[wrong] * 3))
    with pytest.raises(ServerError, match=f"the backend returned a {type(wrong).__name__}, but has to return a Chat"):
        await rig.ask()


NO_TEXT: Any = None
NO_COUNT: Any = "3"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (ChatReply(NO_TEXT), "a ChatReply whose text is None; it has to be a text"),
        (
            ChatReply("fine", Usage(-1, 2)),
            r"a ChatReply whose usage is Usage\(prompt_tokens=-1.*; give numbers of tokens",
        ),
        (ChatReply("fine", Usage(1, NO_COUNT)), "a ChatReply whose usage is .*; give numbers of tokens"),
    ],
    ids=["no text", "fewer tokens than none", "no number"],
)
async def test_a_reply_with_parts_of_another_type_is_an_error(wrong: object, said: str) -> None:
    rig = Rig(Faulty(*[wrong] * 3))
    with pytest.raises(ServerError, match=f"the backend returned {said}"):
        await rig.ask()


async def test_a_list_of_models_that_fails_is_told_of_the_backend() -> None:
    class Unlisted(Scripted):
        async def models(self) -> tuple[str, ...]:
            raise KeyError("data")

    with pytest.raises(BackendUnreachableError, match="can't be used: the backend's own code raised KeyError: 'data'"):
        await Rig(Unlisted()).client.check()
