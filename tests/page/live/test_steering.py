"""Steering a run over HTTP: who has the token can, from the page itself alone, and what is wrong is refused in words."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.acts import Act, Comment, Pause, Stop, Veto
from flowevolve.page.live.posts import MOST_BYTES
from flowevolve.page.live.run_pipe import RunPipe
from flowevolve.page.live.server import serve_page

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("result")]

PAUSE = {"act": {"act": "pause"}, "by": "ada"}


class Run(RunPipe):
    """A run that notes what it is asked for, has no candidate c9, and does not answer when it is asked to stop."""

    def __init__(self) -> None:
        super().__init__(BytesIO(), BytesIO())
        self.asked: list[tuple[Act, str]] = []

    async def act(self, act: Act, by: str) -> str | None:
        self.asked.append((act, by))
        if isinstance(act, Stop):
            raise InputError("The run has ended.")
        return "there is no candidate c9" if act == Veto("c9") else None


class Page:
    """A page that steers a run, asked by a program."""

    def __init__(self, address: str, run: Run, client: aiohttp.ClientSession) -> None:
        parts = urlsplit(address)
        self.address = address
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.path = f"{self.url}/api/runs/ended/acts"
        self.token = parse_qs(parts.query)["token"][0]
        self.run = run
        self.client = client

    async def post(self, data: object, headers: dict[str, str] | None = None) -> tuple[int, str]:
        """Post JSON with these headers, by default the token; returns the status and the answer."""
        sent = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        async with self.client.post(
            self.path, data=BytesIO(body), headers={"Content-Type": "application/json", **sent}
        ) as got:
            return got.status, await got.text()

    async def about(self, headers: dict[str, str] | None = None) -> Any:
        async with self.client.get(f"{self.url}/api/runs", headers=headers) as got:
            return await got.json()


@asynccontextmanager
async def steered(directory: Path) -> AsyncGenerator[Page]:
    run = Run()
    async with serve_page([str(directory)], pipe=run) as address, aiohttp.ClientSession() as client:
        yield Page(address, run, client)


async def test_what_the_page_asks_for_is_handed_to_the_run_and_its_answer_comes_back(directory: Path) -> None:
    async with steered(directory) as page:
        assert await page.post(PAUSE) == (200, '{"refused": null}')
        assert await page.post({"act": {"act": "veto", "candidate": "c9"}, "by": "\x1b[1m a\n b "}) == (
            409,
            '{"refused": "there is no candidate c9"}',
        )
        comment = {"act": "comment", "text": "the \ud800 <script>", "example": "1"}
        assert (await page.post({"act": comment}))[0] == 200
        assert await page.post({"act": {"act": "stop"}, "by": "ada"}) == (502, "The run has ended.")
        me = (await page.about())["by"]
    assert page.run.asked == [
        (Pause(), "ada"),
        (Veto("c9"), "\u241b[1m a b"),
        (Comment("the \ud800 <script>", example="1"), me),
        (Stop(), "ada"),
    ]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, "takes the page's token"),
        ({"Authorization": "Bearer wrong"}, "takes the page's token"),
        ({"Cookie": "flowevolve_token=TOKEN"}, "takes the page's token"),
        ({"Authorization": "Bearer TOKEN", "Origin": "http://evil.example"}, "answers no other site"),
        ({"Authorization": "Bearer TOKEN", "Origin": "null"}, "answers no other site"),
        ({"COOKIE": "", "Sec-Fetch-Site": "same-site"}, "answers no other site"),
        ({"COOKIE": "", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, "answers no other site"),
        ({"COOKIE": "", "Host": "evil.example"}, "for this machine"),
    ],
)
async def test_who_has_no_token_or_comes_from_elsewhere_steers_nothing(
    directory: Path, headers: dict[str, str], said: str
) -> None:
    async with steered(directory) as page:
        sent = {name: value.replace("TOKEN", page.token) for name, value in headers.items() if name != "COOKIE"}
        if "COOKIE" in headers:
            sent["Cookie"] = f"flowevolve_token_{urlsplit(page.url).port}={page.token}"
        status, answer = await page.post(PAUSE, sent)
        assert status == 403
        assert said in answer
        assert page.token not in answer
    assert not page.run.asked


async def test_a_browser_has_the_token_in_a_cookie_that_the_printed_address_gives(directory: Path) -> None:
    async with steered(directory) as page, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(f"{page.url}/api/runs") as before, browser.get(page.address) as opened:
            assert "ends with ?token=" in (await before.json())["only_shown"]["ended"]
            assert (opened.status, opened.url.query_string) == (200, "")
        async with browser.get(f"{page.url}/api/runs") as after:
            assert (await after.json())["only_shown"] == {"ended": None}
        async with browser.post(page.path, json=PAUSE, headers={"Origin": page.url}) as posted:
            assert posted.status == 200


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"act=pause", 400, "not JSON"),
        (b"[" * 50_000, 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b'"pause"', 400, "an object with the field act"),
        (b'{"act": {"act": "pause"}, "more": 1}', 400, "an object with the field act"),
        (b'{"act": {"act": "pause"}, "by": 7}', 400, "an object with the field act"),
        (b'{"act": {"act": "fly"}}', 400, "is no act"),
        (b'{"act": {"act": "veto"}}', 400, "veto: candidate"),
        (json.dumps({"act": {"act": "x" * 10_000 + "\x1b"}}).encode(), 400, "xxx"),
        (b" " * (MOST_BYTES + 1), 413, "At most 1048576 bytes"),
    ],
)
async def test_nonsense_is_refused_in_words_and_the_run_never_sees_it(
    directory: Path, body: bytes, status: int, said: str
) -> None:
    async with steered(directory) as page:
        got, answer = await page.post(body)
        assert (got, said in answer) == (status, True), answer
        assert len(answer) <= 500
        assert "\x1b" not in answer
    assert not page.run.asked


async def test_a_form_of_another_site_is_no_json_however_it_is_sent(directory: Path) -> None:
    async with steered(directory) as page:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            headers = {"Authorization": f"Bearer {page.token}", "Content-Type": kind}
            assert (await page.post(PAUSE, headers))[0] == 415
    assert not page.run.asked


async def test_a_page_of_a_run_that_another_process_makes_says_how_to_steer_it(directory: Path) -> None:
    async with serve_page([str(directory)], token="a-token") as address, aiohttp.ClientSession() as client:
        page = Page(address, Run(), client)
        only_shown = (await page.about({"Authorization": f"Bearer {page.token}"}))["only_shown"]
        assert "--watch" in only_shown["ended"]
        assert await page.post(PAUSE) == (409, json.dumps({"refused": only_shown["ended"]}))
    async with serve_page([str(directory)]) as address:
        assert "token" not in address


async def test_a_page_hands_on_what_is_for_a_run_of_another_page(directory: Path) -> None:
    async with steered(directory) as page:
        async with serve_page([str(directory), page.address]) as address:
            here = Page(address, page.run, page.client)
            only_shown = (await here.about({"Authorization": f"Bearer {here.token}"}))["only_shown"]
            assert only_shown.pop("ended") is not None
            assert only_shown == {"ended (2)": None}
            here.path = here.path.replace("ended", "ended (2)")
            assert await here.post(PAUSE) == (200, '{"refused": null}')
            assert (await here.post({"act": {"act": "veto", "candidate": "c9"}}))[0] == 409
            assert await here.post({"act": {"act": "stop"}}) == (
                502,
                f"{page.url}/ refuses the request (502): The run has ended.",
            )
        async with serve_page([f"{page.url}/"]) as address:
            assert "token" not in address
    assert [act for act, _ in page.run.asked] == [Pause(), Veto("c9"), Stop()]
