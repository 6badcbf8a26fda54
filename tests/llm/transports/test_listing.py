"""Where a server's API is, when there is none at the address that was given."""

from __future__ import annotations

import json

import pytest

from flowevolve.core.model import (
    LLMError,
    OverloadedError,
    RefusedError,
    ServerError,
    UnreachableError,
    WrongAddressError,
)
from flowevolve.llm.transports.address import Address
from flowevolve.llm.transports.listing import list_models
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld
from tests.support.http_transports import Kind

pytestmark = pytest.mark.anyio
LIST = json.dumps({"data": [{"id": "m"}]}).encode()


class Server:
    """Has a list of models, or what `there` is, at one path. Elsewhere it answers as `elsewhere` says."""

    def __init__(self, path: str, elsewhere: LLMError | bytes = b"<html>", there: LLMError | bytes = LIST) -> None:
        self.asked: list[str] = []
        self._path, self._elsewhere, self._there = path, elsewhere, there

    async def get(self, path: str) -> bytes:
        self.asked.append(path)
        answer = self._there if path == self._path else self._elsewhere
        if isinstance(answer, LLMError):
            raise answer
        return answer


@pytest.mark.parametrize("elsewhere", [RefusedError("HTTP 404", status=404), b"<html>a page for people</html>"])
async def test_the_address_that_would_work_is_named(elsewhere: LLMError | bytes) -> None:
    with pytest.raises(WrongAddressError, match="one at http://h:8000/v1; give that address instead"):
        await list_models(Address("http://h:8000/"), Server("/v1/models", elsewhere).get)


NOWHERE = RefusedError("HTTP 404", status=404)
DOWN = [
    UnreachableError("HTTP 504", status=504),
    OverloadedError("HTTP 503", status=503),
    UnreachableError("HTTP 502", status=502),
]


@pytest.mark.parametrize("there", DOWN)
async def test_so_is_it_where_that_can_not_serve_now(there: LLMError) -> None:
    """As a gateway whose server is down."""
    with pytest.raises(WrongAddressError, match="one at http://h:8000/v1"):
        await list_models(Address("http://h:8000"), Server("/v1/models", NOWHERE, there).get)


@pytest.mark.parametrize("there", [UnreachableError("no connection"), ServerError("the answer is not JSON")])
async def test_no_answer_and_a_page_for_people_are_no_api(there: LLMError) -> None:
    with pytest.raises(RefusedError) as raised:
        await list_models(Address("http://h:8000"), Server("/v1/models", NOWHERE, there).get)
    assert raised.value is NOWHERE


async def test_a_server_that_fails_at_every_address_is_at_none() -> None:
    failing = ServerError("HTTP 500", status=500)
    with pytest.raises(ServerError) as raised:
        await list_models(Address("http://h:8000"), Server("/v1/models", failing, failing).get)
    assert raised.value is failing


async def test_where_there_is_a_list_nothing_else_is_asked() -> None:
    server = Server("/models")
    assert await list_models(Address("http://h:8000"), server.get) == ("m",)
    assert server.asked == ["/models"]


@pytest.mark.parametrize(
    ("address", "error"),
    [
        (Address("http://h:8000"), RefusedError("HTTP 404", status=404)),
        (Address("http://h:8000"), ServerError("HTTP 500")),
        (Address("http://h:8000/v1"), RefusedError("HTTP 404", status=404)),
        (Address("http://h:8000/openai/v2"), RefusedError("HTTP 404", status=404)),
        (Address("http://h:8000", "2024-10-21"), RefusedError("HTTP 404", status=404)),
        (Address("http://h:8000"), RefusedError("HTTP 401", status=401)),
    ],
)
async def test_elsewhere_the_first_answer_counts(address: Address, error: LLMError) -> None:
    with pytest.raises(LLMError) as raised:
        await list_models(address, Server("/nowhere", error).get)
    assert raised.value is error


async def test_over_each_transport(kind: Kind) -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
    async with serve(backend) as url:
        transport = kind(url.removesuffix("/v1"), None, max_connections=1)
        with pytest.raises(WrongAddressError, match=url):
            await transport.models()
        await transport.aclose()
