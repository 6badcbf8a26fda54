"""The workloads' shapes, and their recording server end to end."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from bench._lib.methods.recording import RECORDING, REQUESTS, Span
from bench._lib.methods.recording_server import in_front_of, shaped, simulated
from bench._lib.methods.workloads import CARRIED_CHARS, WORKLOADS, Pipeline, small
from flowevolve._util.json_types import JSON
from flowevolve.core.model import Message
from flowevolve.sim.profiles import PROFILES, APIProfile, BatchingProfile


@pytest.mark.anyio
@pytest.mark.parametrize("name", list(WORKLOADS))
async def test_a_rollout_makes_the_pipelines_calls_with_texts_of_its_length(name: str) -> None:
    workload = WORKLOADS[name]
    task, asked = Pipeline(workload), list[Sequence[Message]]()

    async def model(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        asked.append(messages)
        return "x" * 1000

    assert (len(task.data.train), len(task.data.val)) == (workload.train, workload.validation)
    for example in task.data.val:
        rollout = await task.rollout(task.seed(), example, model)
        assert len(rollout.calls) == 1
    assert len(asked) == workload.calls * workload.validation
    lengths = sorted(len(messages[-1].content) / 4 for messages in asked)
    request_and_notes = 40 + (CARRIED_CHARS / 4 if workload.calls > 1 else 0)
    assert lengths[len(lengths) // 2] == pytest.approx(workload.context.median + request_and_notes, rel=0.3)
    assert all(messages[0] == Message("system", task.seed()["system_prompt"]) for messages in asked)


def test_a_small_one_has_less_text() -> None:
    assert small(WORKLOADS["hover"]).context.median == WORKLOADS["hover"].context.median / 8


def test_the_same_server_faster() -> None:
    slow = PROFILES["qwen3-8b-h100"]
    assert isinstance(slow, BatchingProfile)
    quick = slow.faster(20)
    assert quick == PROFILES["fast-demo"]
    api = PROFILES["gpt-4o-mini-api"].faster(4)
    assert isinstance(api, APIProfile)
    assert (api.per_token_seconds, api.requests_per_minute) == (0.0125 / 4, 20_000)


@pytest.mark.anyio
async def test_the_server_records_who_asked_for_what() -> None:
    profile = shaped("gpt-4o-mini-api", "hotpotqa", speed=1000)
    async with simulated(profile) as direct, in_front_of(direct) as url, ClientSession() as session:
        body = {"model": "simulated", "messages": [{"role": "user", "content": "tell me"}], "max_tokens": 7}
        for text in ("tell me", "# Improve an instruction"):
            body["messages"] = [{"role": "user", "content": text}]
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                content = await answer.json()
        assert "```" in content["choices"][0]["message"]["content"]
        for address in (direct, url):
            recorded = await _spans(session, address)
            assert [(each.role, each.characters, each.max_tokens) for each in recorded] == [
                ("rollout", 7, 7),
                ("reflection", 24, 7),
            ]
            assert all(each.tokens and each.tokens <= 7 and each.ended > each.begun for each in recorded)
        async with session.get(url.removesuffix("/v1") + REQUESTS) as answer:
            asked = await answer.json()
        assert [each["messages"][0]["content"] for each in asked] == ["tell me", "# Improve an instruction"]
        assert await _begins_fresh(session, direct)
        assert await _spans(session, direct) == []


@pytest.mark.anyio
@pytest.mark.parametrize(("answer", "fresh"), [({"success": True}, True), ({"success": False}, False), (None, False)])
async def test_a_real_servers_prefix_cache_is_emptied_where_it_lets_us(answer: JSON, fresh: bool) -> None:
    app = web.Application()
    if answer is not None:

        async def reset(request: web.Request) -> web.Response:
            return web.json_response(answer)

        app.router.add_post("/reset_prefix_cache", reset)
    async with TestServer(app) as server, in_front_of(str(server.make_url("/v1"))) as url, ClientSession() as session:
        assert await _begins_fresh(session, url) is fresh


async def _begins_fresh(session: ClientSession, url: str) -> bool:
    async with session.delete(url.removesuffix("/v1") + RECORDING) as answer:
        fresh: bool = (await answer.json())["fresh"]
        return fresh


async def _spans(session: ClientSession, url: str) -> list[Span]:
    async with session.get(url.removesuffix("/v1") + RECORDING) as answer:
        return [Span(*each) for each in json.loads(await answer.read())["spans"]]
