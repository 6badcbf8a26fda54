"""Whole runs with servers that tell impossible numbers of tokens: the books can't break, and neither can a resume."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import cycle
from pathlib import Path

import anyio
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.run import Config, parse_config
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import read_result
from flowevolve.llm.usage import MOST_TOKENS
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import run
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

NUMBERS: list[JSON] = [10**18, 2**63, 2**64, -1, -(2**63), 10**400, 1e300, 0.5, "9", True, None, [9], {"tokens": 9}]
BOOKS = ("prompt_tokens", "completion_tokens", "total_tokens")


def books(number: JSON) -> JSON:
    """A usage in which everything is this number."""
    return {**dict.fromkeys(BOOKS, number), "prompt_tokens_details": {"cached_tokens": number}}


def telling(usages: list[JSON]) -> Middleware:
    """Has every answer tell the next of these usages."""
    told = cycle(usages)

    @web.middleware
    async def tell(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        if not isinstance(response, web.Response) or not request.path.endswith("completions"):
            return response
        return web.json_response({**json.loads(response.text or "{}"), "usage": next(told)})

    return tell


def config(url: str, **budget: object) -> Config:
    llm = {"backend": "openai", "transport": "aiohttp", "model": "m", "base_url": url}
    prices = {"m": {"input": 1, "output": 1_000_000}}
    return parse_config({"algorithm": {"mode": "sync"}, "budget": budget, "llm": {**llm, "prices": prices}}, "test")


def test_impossible_numbers_of_tokens_are_estimated_and_the_run_goes_on(tmp_path: Path) -> None:
    async def go() -> tuple[Result, Result]:
        backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
        async with serve(backend, middlewares=[telling([*NUMBERS, *map(books, NUMBERS)])]) as url:
            first = await run(config(url, proposals=3, tokens=10**7, dollars=10**12), out=tmp_path)
            more = resume(tmp_path, changes=["budget.proposals=5"])
            return first, await more

    first, second = anyio.run(go)
    assert (first.report.stop_reason, second.report.stop_reason) == ("proposals", "proposals")
    tokens = second.llm.usage.total_tokens
    assert 0 < first.llm.usage.total_tokens < tokens < 10**6
    assert second.llm.dollars is not None
    assert 0 < second.llm.dollars < tokens
    assert second.llm.estimated > 0
    with RecordedRun(tmp_path) as recorded:
        told = [event.data["model"] for event in recorded.events() if event.kind == "usage.estimated"]
        assert sum(0 if call.usage is None else call.usage.total_tokens for call in recorded.calls()) == tokens
    assert told == ["m", "m"]  # once, and once after the resume
    assert json.loads(json.dumps(read_result(tmp_path), allow_nan=False))
    with closing(sqlite3.connect(tmp_path / JOURNAL)) as database:
        assert database.execute("SELECT count(*) FROM calls").fetchone()[0] == second.llm.requests


def test_sums_of_the_largest_numbers_that_are_believed_fit_wherever_they_are_kept(tmp_path: Path) -> None:
    async def go() -> Result:
        backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
        usage: JSON = {"prompt_tokens": MOST_TOKENS, "completion_tokens": MOST_TOKENS}
        async with serve(backend, middlewares=[telling([usage])]) as url:
            return await run(config(url, proposals=2), out=tmp_path)

    result = anyio.run(go)
    assert result.llm.usage.total_tokens == 2 * MOST_TOKENS * result.llm.requests


@pytest.mark.parametrize("price", ["inf", "nan", "-1", "1e300"])
def test_a_price_with_which_sums_would_break_is_refused(price: str) -> None:
    table = {"budget": {"proposals": 1}, "llm": {"prices": {"m": {"input": float(price), "output": 1}}}}
    with pytest.raises(InputError, match=r"llm\.prices\.m\.input"):
        parse_config(table, "test")
