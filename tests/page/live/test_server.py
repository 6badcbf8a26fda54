"""The live page's server: browsers get every change, also after they were away, and nobody else gets anything."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from flowevolve._util.errors import InputError
from flowevolve._util.web_server import listening
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.blame.blame import blame
from flowevolve.page.live.server import serve_page
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.columns import in_object
from flowevolve.page.tables.memory import Tables
from flowevolve.runner.result import Result

pytestmark = pytest.mark.asyncio

TOKEN = "a-token"
CUT = 100


@pytest.fixture
def run(directory: Path, result: Result, tmp_path: Path) -> Path:
    """A run that goes on: of its journal only the beginning is there yet, and the rest is kept beside it."""
    path = tmp_path / "run"
    shutil.copytree(directory, path)
    shutil.copy(path / JOURNAL, tmp_path / JOURNAL)
    for name in ("result.json", "journal.end"):
        (path / name).unlink()
    with closing(sqlite3.connect(path / JOURNAL)) as database:
        database.execute("DELETE FROM events WHERE seq > ?", (CUT,))
        database.execute("DELETE FROM calls WHERE seq > ?", (CUT,))
        database.commit()
    return path


def go_on(run: Path, upto: int) -> None:
    """Write the events after those that are there, up to a number."""
    with closing(sqlite3.connect(run / JOURNAL)) as database:
        database.execute("ATTACH ? AS whole", (str(run.parent / JOURNAL),))
        database.execute(
            "INSERT INTO events SELECT * FROM whole.events WHERE seq > (SELECT max(seq) FROM events) AND seq <= ?",
            (upto,),
        )
        database.commit()


@asynccontextmanager
async def served(run: Path, token: str | None = None) -> AsyncGenerator[tuple[aiohttp.ClientSession, str]]:
    """A client of the page without cookies, and the page's address without its token."""
    async with serve_page([str(run)], token=token) as address, aiohttp.ClientSession() as client:
        parts = urlsplit(address)
        yield client, f"{parts.scheme}://{parts.netloc}"


async def fetched(client: aiohttp.ClientSession, url: str) -> Any:
    async with client.get(url) as response:
        assert response.status == 200
        return await response.json()


def cookie_at(url: str) -> str:
    """The name of the cookie of the page at an address: pages at several ports have cookies of their own."""
    return f"flowevolve_token_{urlsplit(url).port}"


async def next_message(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The fields of the next event of a stream."""
    fields: dict[str, str] = {}
    while (line := (await response.content.readline()).decode().strip()) or not fields:
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
    return fields


async def test_a_browser_gets_what_is_there_and_then_what_comes(run: Path) -> None:
    async with served(run) as (client, url):
        runs = await fetched(client, f"{url}/api/runs")
        assert runs["runs"] == ["run"]
        tables = (await fetched(client, f"{url}/api/runs/run/tables"))["tables"]
        assert tables["log"]["rows"] == CUT + 1
        async with client.get(f"{url}/api/events", params={"after": runs["version"]}) as events:
            go_on(run, CUT + 20)
            message = await next_message(events)
        ((changed),) = json.loads(message["data"])
        assert changed["run"] == "run"
        assert [row[0] for row in changed["tables"]["log"]] == list(range(CUT + 1, CUT + 21))


async def test_a_browser_that_was_away_gets_all_that_it_missed(run: Path) -> None:
    async with served(run) as (client, url):
        before = (await fetched(client, f"{url}/api/runs"))["version"]
        async with client.get(f"{url}/api/events", params={"after": before}) as events:
            go_on(run, CUT + 20)
            await next_message(events)
            go_on(run, CUT + 40)
            await next_message(events)
        async with client.get(f"{url}/api/events", headers={"Last-Event-ID": before}) as events:
            message = await next_message(events)
        ((changed),) = json.loads(message["data"])
        assert [row[0] for row in changed["tables"]["log"]] == list(range(CUT + 1, CUT + 41))
        spans = [row[0] for row in changed["tables"]["spans"]]
        assert len(spans) == len(set(spans))
        for strange in ("other-3", before + "0" * 5000):
            async with client.get(f"{url}/api/events", headers={"Last-Event-ID": strange}) as events:
                assert (await next_message(events))["event"] == "anew"
        everything = await fetched(client, f"{url}/api/runs/run/changes")
        assert await fetched(client, f"{url}/api/runs/run/changes?after={before}{'0' * 5000}") == everything


async def test_browsers_are_told_when_the_server_ends(run: Path) -> None:
    async with aiohttp.ClientSession() as client:
        async with serve_page([str(run)]) as address:
            version = (await fetched(client, f"{address}api/runs"))["version"]
            events = await client.get(f"{address}api/events", params={"after": version})
            go_on(run, CUT + 20)
        messages = [await next_message(events)]
        while messages[-1].get("event") != "end":
            messages.append(await next_message(events))
        assert any("data" in message and "log" in message["data"] for message in messages)


async def test_the_texts_of_a_call_are_the_journals(run: Path, directory: Path) -> None:
    with RecordedRun(directory) as recorded:
        call = recorded.call(1)
    assert call is not None
    assert call.messages is not None
    async with served(run) as (client, url):
        texts = await fetched(client, f"{url}/api/runs/run/calls/1")
        assert texts["reply"] == call.reply
        assert texts["messages"] == [{"role": each.role, "content": each.content} for each in call.messages]
        large = [f"runs/run/calls/{digits}" for digits in ("99999999999999999999", "9" * 5000, "٣" * 500)]
        for missing in ("runs/run/calls/99999", "runs/run/calls/x", "runs/other/tables", *large):
            async with client.get(f"{url}/api/{missing}") as response:
                assert response.status == 404


async def test_the_page_may_connect_to_its_own_server_alone(run: Path) -> None:
    async with served(run) as (client, url), client.get(f"{url}/") as response:
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "connect-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
    ],
)
async def test_other_sites_are_refused(run: Path, headers: dict[str, str]) -> None:
    async with served(run) as (client, url), client.get(f"{url}/api/runs", headers=headers) as response:
        assert response.status == 403


async def test_a_link_on_another_site_may_lead_to_the_page(run: Path) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with served(run) as (client, url):
        async with client.get(f"{url}/", headers=headers) as response:
            assert response.status == 200
        async with client.get(f"{url}/api/runs", headers=headers) as response:
            assert response.status == 403


async def test_who_has_no_token_gets_nothing(run: Path) -> None:
    async with served(run, TOKEN) as (client, url):
        for path, headers in (
            ("/", {}),
            ("/api/runs", {}),
            ("/?token=wrong", {}),
            ("/api/runs?token=a-token", {}),
            ("/api/runs", {"Authorization": "Bearer wrong"}),
            ("/api/runs", {"Cookie": f"{cookie_at(url)}=wrong"}),
        ):
            async with client.get(f"{url}{path}", headers=headers) as response:
                assert response.status == 403, path
                assert TOKEN not in await response.text()


async def test_the_token_becomes_a_cookie(run: Path) -> None:
    async with served(run, TOKEN) as (client, url):
        async with client.get(f"{url}/?token={TOKEN}", allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/")
            cookie = response.cookies[cookie_at(url)]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        async with client.get(f"{url}/api/runs", headers={"Cookie": f"{cookie_at(url)}={TOKEN}"}) as response:
            assert response.status == 200
        async with client.get(f"{url}/api/runs", headers={"Authorization": f"Bearer {TOKEN}"}) as response:
            assert response.status == 200


async def test_nothing_can_be_written(run: Path) -> None:
    async with served(run) as (client, url), client.post(f"{url}/api/runs") as response:
        assert response.status == 403


async def test_a_page_can_show_the_runs_of_another_page(run: Path, directory: Path) -> None:
    """The other one is on another machine, and is asked with its token; a run of this machine has the same name."""
    async with (
        serve_page([str(run)], token=TOKEN) as remote,
        serve_page([str(run), remote]) as address,
        aiohttp.ClientSession() as client,
    ):
        runs = await fetched(client, f"{address}api/runs")
        assert runs["runs"] == ["run", "run (2)"]
        local, other = [(await fetched(client, f"{address}api/runs/{name}/tables"))["tables"] for name in runs["runs"]]
        assert other == local
        assert await fetched(client, f"{address}api/runs/run (2)/calls/1")
        go_on(run, CUT + 20)
        changed: set[str] = set()
        async with client.get(f"{address}api/events", params={"after": runs["version"]}) as events:
            while changed != {"run", "run (2)"}:
                changed |= {each["run"] for each in json.loads((await next_message(events))["data"])}


async def test_a_page_that_gives_no_answer_holds_up_no_other_run(run: Path) -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def names(request: web.Request) -> web.Response:
        return web.json_response({"runs": ["remote"], "only_shown": {}})

    async def changes(request: web.Request) -> web.Response:
        if request.query["after"]:
            asked.set()
            await let_go.wait()
        return web.json_response({"version": "1", "tables": {}})

    app = web.Application()
    app.add_routes([web.get("/api/runs", names), web.get("/api/runs/remote/changes", changes)])
    async with (
        listening(app, "127.0.0.1", 0) as remote,
        serve_page([remote, str(run)]) as address,
        aiohttp.ClientSession() as client,
    ):
        version = (await fetched(client, f"{address}api/runs"))["version"]
        async with client.get(f"{address}api/events", params={"after": version}) as events:
            await asked.wait()
            go_on(run, CUT + 20)
            ((changed),) = json.loads((await next_message(events))["data"])
        assert changed["run"] == "run"
        let_go.set()


@pytest.mark.parametrize(
    ("address", "said"),
    [("?token=wrong", "refuses the request \\(403\\)"), ("nowhere", "is not a live page")],
)
async def test_an_address_without_a_page_is_named(run: Path, address: str, said: str) -> None:
    async with serve_page([str(run)], token=TOKEN) as remote:
        place = f"{remote.partition('?')[0]}{address}"
        if address == "nowhere":
            place += f"?token={TOKEN}"
        with pytest.raises(InputError, match=said):
            async with serve_page([place]):
                pass


async def test_a_run_that_can_not_be_read_any_more_says_why(run: Path) -> None:
    async with served(run) as (client, url):
        version = (await fetched(client, f"{url}/api/runs"))["version"]
        async with client.get(f"{url}/api/events", params={"after": version}) as events:
            with closing(sqlite3.connect(run / JOURNAL)) as database:
                database.execute("INSERT INTO events (seq, t, kind, data) VALUES (101, 9, 'run.stop', 'not JSON')")
                database.commit()
            message = await next_message(events)
    assert "is damaged: event 101 can't be read" in message["data"]


async def test_the_origins_of_sentences_are_told_of_any_candidate_by_the_page_of_another_page_too(
    directory: Path, result: Result
) -> None:
    assert result.best is not None
    with RunSource(directory, "ended") as source:
        rows = blame(Tables(source.changes()), [result.best.id], source.reply)
    async with served(directory) as (client, url), serve_page([f"{url}/"]) as other:
        parts = urlsplit(other)
        for address in (url, f"{parts.scheme}://{parts.netloc}"):
            assert await fetched(client, f"{address}/api/runs/ended/blame/{result.best.id}") == list(
                map(in_object, rows)
            )
            assert await fetched(client, f"{address}/api/runs/ended/blame/unknown") == []
