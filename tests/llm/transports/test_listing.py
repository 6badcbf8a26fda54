"""Where a server's API is, when there is none at the address that was given."""

from __future__ import annotations

import json

import pytest

from flowevolve.core.model import LLMError, RefusedError, ServerError, WrongAddressError
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
    """Has a list of models at one path. Elsewhere it answers as `elsewhere` says."""

    def __init__(self, path: str, elsewhere: LLMError | bytes = b"<html>") -> None:
        self.asked: list[str] = []
        self._path, self._elsewhere = path, elsewhere

    async def get(self, path: str) -> bytes:
        self.asked.append(path)
        if path == self._path:
            return LIST
        if isinstance(self._elsewhere, LLMError):
            raise self._elsewhere
        return self._elsewhere


@pytest.mark.parametrize("elsewhere", [RefusedError("HTTP 404", status=404), b"<html>a page for people</html>"])
async def test_the_address_that_would_work_is_named(elsewhere: LLMError | bytes) -> None:
    with pytest.raises(WrongAddressError, match="at http://h:8000/v1 there is: give that address instead"):
        await list_models(Address("http://h:8000/"), Server("/v1/models", elsewhere).get)


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
