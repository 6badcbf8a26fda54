"""What a run tells a gateway of itself."""

from __future__ import annotations

import pytest
from aiohttp import web
from hypothesis import given, strategies as st

from flowevolve._util.web_server import listening
from flowevolve.core.model import ChatReply, ChatRequest, Message
from flowevolve.llm.transports.sender import OTHERS, Sender
from flowevolve.llm.transports.server_side import answer_body
from tests.support.http_transports import KINDS, Kind


@given(
    share=st.floats(1e-6, 1e6).map(lambda share: float(f"{share:g}")),
    priority=st.integers(-1_000_000, 1_000_000),
)
def test_what_is_told_is_read(share: float, priority: int) -> None:
    sender = Sender.new(share, priority)
    assert Sender.of(sender.headers()) == sender


def test_every_run_has_a_name_of_its_own() -> None:
    assert len({Sender.new(1.0, 0).run for _ in range(100)}) == 100


def test_who_tells_nothing_is_one_of_the_others() -> None:
    assert Sender.of({}) == Sender(OTHERS, 1.0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Run", ""),
        ("Run", 'x"} 1\nother'),
        ("Run", "x" * 65),
        ("Share", "0"),
        ("Share", "1e-320"),
        ("Share", "nan"),
        ("Share", "inf"),
        ("Share", "much"),
        ("Priority", "1.5"),
        ("Priority", "1e9"),
    ],
)
def test_what_can_not_be_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"X-Flowevolve-{name} must be"):
        Sender.of({f"X-Flowevolve-{name}": value})


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
async def test_every_request_tells_who_sent_it(kind: Kind) -> None:
    senders: list[Sender] = []

    async def answer(request: web.Request) -> web.Response:
        senders.append(Sender.of(request.headers))
        return web.Response(body=answer_body(ChatReply("fine"), 1), content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    sender = Sender("run-a", share=2.5, priority=-3)
    async with listening(app, "127.0.0.1", 0) as url:
        transport = kind(f"{url}/v1", None, max_connections=1, headers=sender.headers())
        await transport.chat(ChatRequest("m", (Message("user", "hello"),)), timeout=60)
        await transport.aclose()
    assert senders == [sender]
