"""Several endpoints, rate limits and hedging in whole runs: over sockets, and as a configuration asks for them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from urllib.parse import urlsplit

import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError, InputError
from flowevolve._util.tasks import Pulse, beside
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import Message
from flowevolve.llm.client.accounting import Totals
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.admission import ServerLoad
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.router import Router
from flowevolve.policies.admission import ServerQueue
from flowevolve.runner.check import check
from flowevolve.runner.llm import make_roles, make_transport, open_probe, open_roles
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.summary import summarize


def instant() -> SimBackend:
    return SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")


class Serving:
    """A simulated server over HTTP that can be shut down and brought back at the same address."""

    def __init__(self) -> None:
        self.backend = instant()
        self.url = ""
        self._up = AsyncExitStack()

    async def start(self) -> None:
        port = urlsplit(self.url).port or 0
        self.url = await self._up.enter_async_context(serve(self.backend, port=port))

    async def stop(self) -> None:
        await self._up.aclose()

    @property
    def served(self) -> int:
        return self.backend.service.stats.finished


@pytest.mark.anyio
async def test_one_of_three_servers_goes_away_and_comes_back_and_nothing_is_lost() -> None:
    servers = [Serving() for _ in range(3)]
    for server in servers:
        await server.start()
    transports = {server.url: AioHTTPTransport(server.url, None, max_connections=8) for server in servers}
    router = Router(transports, first_check_seconds=0.01)
    retry = RetryPolicy(base_seconds=0.01, max_seconds=0.05)
    client = LLMClient({"task": Model(router, "m")}, Scheduler(12), retry, 1, lambda record: None)
    asked = 0
    lost = servers[1]

    async def ask_until(done: anyio.Event) -> None:
        nonlocal asked
        while not done.is_set():
            asked += 1
            scope = CallScope("evaluate", str(asked), None, 0, 0)
            await client.chat("task", [Message("system", f"prompt {asked % 7} " * 50)], scope=scope)

    async def ask_while(condition: partial[bool]) -> None:
        """Twelve callers, for as long as the condition holds."""
        done = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(ask_until, done)
            while condition():
                await anyio.lowlevel.checkpoint()
            done.set()

    def counts(least: int) -> bool:
        return min(server.served for server in servers) < least

    def ejected(expected: bool) -> bool:
        return router.stats()[1].ejected is not expected

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await ask_while(partial(counts, 20))
            tasks.start_soon(ask_while, partial(ejected, True))
            await lost.stop()
        others = [server.served for server in servers]
        before = lost.served
        await lost.start()
        await ask_while(partial(ejected, False))
        await ask_while(partial(counts, before + 20))
    totals = client.account.totals()
    assert (totals.requests, totals.failed) == (asked, 0)
    assert totals.retries > 0
    stats = router.stats()
    assert [endpoint.ejections for endpoint in stats] == [0, 1, 0]
    assert sum(server.served for server in servers) >= asked  # an answer may be lost on its way, and is asked for again
    assert servers[0].served > others[0]
    await router.aclose()
    for server in servers:
        await server.stop()


@pytest.mark.anyio
async def test_a_run_over_several_endpoints_shares_them_and_reports_them() -> None:
    servers = [Serving(), Serving()]
    for server in servers:
        await server.start()
    nowhere = "http://127.0.0.1:9/v1"
    table = {
        "budget": {"proposals": 4},
        "llm": {
            "backend": "openai",
            "transport": "aiohttp",
            "model": "m",
            "base_urls": [servers[0].url, nowhere],
            "roles": {"reflection": {"base_url": servers[1].url}},
        },
        "scheduler": {"admission": {"policy": "server_queue", "interval_seconds": 0.01}},
    }
    seen: list[Event] = []
    metrics = Metrics()
    with pytest.raises(BackendUnreachableError, match=f"{nowhere} can't be used, but the other endpoints can"):
        await check(parse_config(table, "test"))
    result = await run(parse_config(table, "test"), watchers=Watchers(events=(seen.append, metrics.event)))
    for server in servers:
        await server.stop()
    first, second = result.traffic.endpoints
    assert (first.url, second.url) == (servers[0].url, nowhere)
    assert first.requests == servers[0].served > 0
    assert servers[1].served > 0
    assert (second.requests, second.ejected) == (0, True)
    assert "endpoint.ejected" in [event.kind for event in seen]
    assert metrics.registry.get_sample_value("flowevolve_endpoint_up", {"endpoint": nowhere}) == 0
    assert result.llm.failed == 0
    llm = result.to_json()["llm"]
    assert isinstance(llm, dict)
    assert [endpoint["url"] for endpoint in llm["endpoints"]] == [servers[0].url, nowhere]
    summarize(result.to_json())


@pytest.mark.anyio
async def test_the_load_of_all_endpoints_of_all_roles_is_summed() -> None:
    servers = [Serving(), Serving()]
    for server in servers:
        await server.start()
    llm = {"backend": "openai", "model": "m", "base_urls": [server.url for server in servers]}
    config = parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")
    async with open_roles(config, make_roles(config)) as roles:
        transports = [member.transport for role in roles.values() for member in role.members]
        assert len({id(transport) for transport in transports}) == 1
        unanswered, told = Pulse(), anyio.Event()
        async with open_probe(config, transports[:1], ServerQueue(), unanswered) as probe, beside() as tasks:
            assert await probe.load() == ServerLoad(0, 0, None, 0, 0)

            async def hear() -> None:
                await unanswered.wait()
                told.set()

            tasks.start_soon(hear)
            await servers[0].stop()
            assert await probe.load() == ServerLoad(0, 0, None, 0, 0)
            await told.wait()
            await servers[1].stop()
            assert await probe.load() is None


def configured(**llm: object) -> Config:
    table = {"backend": "openai", "model": "m", **llm}
    return parse_config({"budget": {"proposals": 1}, "llm": table}, "test")


def test_a_list_of_one_is_no_router_and_no_list_is_openai() -> None:
    assert configured(base_urls=["http://a/v1"]).llm.urls == ("http://a/v1",)
    assert configured(base_url="http://a/v1").llm.urls == ("http://a/v1",)
    assert configured().llm.urls == ()


@pytest.mark.anyio
async def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"llm.*base_url and base_urls are both given"):
        configured(base_url="http://a/v1", base_urls=["http://b/v1"])
    with pytest.raises(
        InputError, match=r"llm\.base_urls is an empty list, but has to be a list with at least 1 entry"
    ):
        configured(base_urls=[])
    with pytest.raises(InputError, match=r"llm\.base_urls is 'http://a/v1', but has to be a list$"):
        configured(base_urls="http://a/v1")
    with pytest.raises(InputError, match=r"llm\.base_urls\.0: this is no address.* \(got 'a'\)$"):
        configured(base_urls=["a"])
    with pytest.raises(InputError, match=r"llm\.base_urls\.0: this is no address.*; 1 more value is wrong$"):
        configured(base_urls=["a", "b"])
    with pytest.raises(InputError, match=r"llm\.hedge"):
        configured(hedge=0.9)
    with pytest.raises(InputError, match=r"http://a/v1 is there twice"):
        make_transport(configured(base_urls=["http://a/v1", "http://a/v1/"]).llm)


def simulated(**llm: object) -> tuple[Result, Totals]:
    table = {
        "clock": "virtual",
        "budget": {"minutes": 4},
        "sim": {"profile": llm.pop("profile", "qwen3-8b-h100")},
        "llm": llm,
    }

    async def go() -> Result:
        return await run(parse_config(table, "test"))

    result = clock.run(go, clock="virtual")
    return result, result.llm


def test_a_run_keeps_to_its_rate_limit() -> None:
    result, llm = simulated(requests_per_minute=60)
    assert llm.requests <= 4 * 60 + 2 + 30  # what is open at the end of the time is answered in the drain
    assert llm.requests > 200
    [limit] = result.traffic.limits
    assert limit.requests_per_minute == 60
    assert limit.storms == 0


def test_a_run_hedges_as_much_as_it_may_and_repeats() -> None:
    result, llm = simulated(hedge=0.05)
    again, llm_again = simulated(hedge=0.05)
    hedged = result.traffic.hedged
    assert hedged is not None
    assert hedged == again.traffic.hedged
    assert llm == llm_again
    assert 0 < hedged.sent <= 0.05 * (llm.requests + result.cancelled) + 10
    assert "hedged" in str(result.to_json()["llm"])
    summarize(result.to_json())
