"""A run that asks for its live page has one while it goes on, and none afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import aiohttp
import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.json_types import JSON
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.core.stop_reasons import STOPPED
from flowevolve.runner import watching
from flowevolve.runner.run import Watchers, open_run, run
from flowevolve.runner.watching import PageProcess
from tests.support.watched import run_while

TABLE: dict[str, object] = {
    "clock": "virtual",
    "watch": True,
    "task": {"name": "house_style"},
    "llm": {"backend": "sim"},
    "budget": {"proposals": 1},
}


def runs_at(address: str) -> object:
    """The names of the runs that a page shows."""
    with urlopen(f"{address.partition('?')[0]}api/runs") as answer:
        return json.load(answer)["runs"]


def test_the_page_is_there_while_the_run_goes_on(tmp_path: Path) -> None:
    addresses: list[str] = []
    shown: list[object] = []

    def look(event: Event) -> None:
        if event.kind == "run.start":
            with ThreadPoolExecutor() as beside:
                shown.append(beside.submit(runs_at, addresses[0]).result())

    watchers = Watchers(events=(look,), pages=(addresses.append,))
    clock.run(lambda: run(parse_config(TABLE, "test"), out=tmp_path / "out", watchers=watchers), clock="virtual")
    assert shown == [["out"]]
    with pytest.raises(URLError):
        runs_at(addresses[0])


def test_a_run_that_is_gone_on_with_may_have_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")  # it is asked for, which is enough here
    out, said = tmp_path / "out", list[str]()
    clock.run(lambda: run(parse_config({**TABLE, "watch": False}, "test"), out=out), clock="virtual")
    watchers = Watchers(pages=(said.append,))
    changes = ["watch=true", "budget.proposals=2"]
    clock.run(lambda: fe.resume(out, changes=changes, watchers=watchers), clock="virtual")
    assert said == ["none, as its server did not start"]


def test_optimize_tells_the_address_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    budget = fe.Budget(proposals=1)
    result = fe.optimize(budget=budget, clock="virtual", progress=False, watch=True, out=tmp_path / "out")
    assert result.directory == tmp_path / "out"
    assert capsys.readouterr().err == "the live page: none, as its server did not start\n"
    with pytest.raises(
        fe.InputError, match="optimize: watch shows the run in a directory; give that directory as out="
    ):
        fe.optimize(budget=budget, clock="virtual", watch=True)


def test_a_run_goes_on_where_its_page_can_not_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    said: list[str] = []
    watchers = Watchers(pages=(said.append,))
    result = clock.run(lambda: run(parse_config(TABLE, "test"), out=tmp_path, watchers=watchers), clock="virtual")
    assert result.proposals == 1
    assert said == ["none, as its server did not start"]


SLOW: dict[str, object] = {**TABLE, "clock": "real", "budget": {"minutes": 10}, "drain_seconds": 0}
"""A run that goes on until it is stopped."""


async def posted(address: str, act: Mapping[str, JSON]) -> tuple[int, str]:
    """Have the page at an address do an act; returns the status and the answer."""
    parts = urlsplit(address)
    headers = {"Authorization": f"Bearer {parse_qs(parts.query)['token'][0]}"}
    url = f"{parts.scheme}://{parts.netloc}/api/runs/out/acts"
    said = {"act": act, "by": "ada"}
    async with aiohttp.ClientSession() as client, client.post(url, json=said, headers=headers) as answer:
        return answer.status, await answer.text()


def test_what_is_done_in_the_page_is_done_to_the_run(tmp_path: Path) -> None:
    answers: list[tuple[int, str]] = []

    async def steer(address: str) -> None:
        answers.append(await posted(address, {"act": "pause"}))
        answers.append(await posted(address, {"act": "veto", "candidate": "nobody"}))

    asyncio.run(run_while(SLOW, tmp_path / "out", steer))
    (paused, _), (vetoed, why) = answers
    assert (paused, vetoed) == (200, 409)
    assert "nobody" in why


PAGE_THAT_DIES = """
print('the live page: http://127.0.0.1:9/', flush=True)
"""
PAGE_OF_NONSENSE = r"""
import os, sys
print('the live page: http://127.0.0.1:9/', flush=True)
for line in (
    b'\xff\x1b[2J',
    b'{"id": 1}',
    b'{"id": "a", "by": "b", "act": {"act": "stop"}}',
    b'[' * 100_000,
    b'{"id": 2, "by": "b", "act": {"act": "fly"}}',
    b'{"id": 3, "by": "b", "act": {"act": "veto", "candidate": 7}}',
):
    sys.stdout.buffer.write(line + b'\n')
sys.stdout.flush()
answers = sys.stdin.readline() + sys.stdin.readline()
open(os.environ["ANSWERS"], "w").write(answers)
sys.stdin.close()
"""


def page_is(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this program be the page of the runs of a test."""
    program = folder / "python"
    program.write_text(f"#!{sys.executable}\n{page}", "utf-8")
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("print('a warning'); print('the live page: http://127.0.0.1:9/')", "http://127.0.0.1:9/"),
        (
            "print('a warning'); print('error: the port is taken'); print()",
            "none, as its server did not start: error: the port is taken",
        ),
    ],
)
def test_the_address_is_found_among_what_else_the_page_s_process_says(
    tmp_path: Path, page: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_is(page, tmp_path, monkeypatch)
    said: list[str] = []
    watchers = Watchers(pages=(said.append,))
    clock.run(lambda: run(parse_config(TABLE, "test"), out=tmp_path / "out", watchers=watchers), clock="virtual")
    assert said == [told]


@pytest.mark.parametrize("kind", ["real", "virtual"])
def test_a_run_does_not_wait_for_ever_for_a_page_that_tells_no_address(
    tmp_path: Path, kind: clock.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_is("input()", tmp_path, monkeypatch)
    monkeypatch.setattr(watching, "STARTING_SECONDS", 0.1)
    said: list[str] = []

    async def note(address: str) -> None:
        said.append(address)

    result = clock.run(partial(run_while, {**SLOW, "clock": kind}, tmp_path / "out", note), clock=kind)
    assert said == ["none, as its server did not start within 0 s"]
    assert result.stop_reason == STOPPED


def test_a_run_may_be_cancelled_while_it_waits_for_the_address_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    page_is(f"open({str(begun)!r}, 'w').close(); input()", tmp_path, monkeypatch)
    said: list[str] = []

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            watchers = Watchers(pages=(said.append,))
            tasks.start_soon(partial(run, parse_config(SLOW, "test"), out=tmp_path / "out", watchers=watchers))
            await clock.in_thread(begun.read_bytes)
            tasks.cancel_scope.cancel()

    clock.run(go)
    assert said == []


@pytest.mark.parametrize("page", [PAGE_THAT_DIES, PAGE_OF_NONSENSE])
def test_nothing_that_the_page_s_process_does_harms_the_run(
    tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_is(page, tmp_path, monkeypatch)
    said = tmp_path / "answers"
    monkeypatch.setenv("ANSWERS", str(said))

    async def until_it_is_gone(address: str) -> None:
        while page == PAGE_OF_NONSENSE and not (said.exists() and said.read_text().count("\n") == 2):  # noqa: ASYNC110
            await anyio.sleep(0.02)

    result = asyncio.run(run_while(SLOW, tmp_path / "out", until_it_is_gone))
    assert result.stop_reason == STOPPED
    if page == PAGE_OF_NONSENSE:
        answers = {answer["id"]: answer["refused"] for answer in map(json.loads, said.read_text().splitlines())}
        assert answers.keys() == {2, 3}
        assert "is no act" in answers[2]


HASTY_PAGE = r"""
import os, sys
print('the live page: http://127.0.0.1:9/', flush=True)
print('{"id": 1, "by": "b", "act": {"act": "pause"}}', flush=True)
open(os.environ["ANSWERS"], "w").write(sys.stdin.readline())
"""


def test_who_acts_before_the_run_has_begun_is_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_is(HASTY_PAGE, tmp_path, monkeypatch)
    answer = tmp_path / "answer"
    monkeypatch.setenv("ANSWERS", str(answer))

    async def go() -> None:
        page = PageProcess()
        await page.start(tmp_path)
        await page.listen()
        await page.end()

    clock.run(go)
    assert json.loads(answer.read_text())["refused"] == "The run has not begun yet; try again in a moment."


def test_a_run_on_the_virtual_clock_says_why_it_can_not_be_steered(tmp_path: Path) -> None:
    answers: list[tuple[int, str]] = []
    addresses: list[str] = []

    async def go() -> None:
        async with open_run(
            parse_config(TABLE, "test"), out=tmp_path / "out", watchers=Watchers(pages=(addresses.append,))
        ):
            answers.append(await clock.in_thread(anyio.run, posted, addresses[0], {"act": "pause"}))

    clock.run(go, clock="virtual")
    ((status, why),) = answers
    assert status == 409
    assert "virtual clock" in why


def test_a_run_without_a_directory_has_no_page() -> None:
    said: list[str] = []
    watchers = Watchers(pages=(said.append,))
    clock.run(lambda: run(parse_config(TABLE, "test"), watchers=watchers), clock="virtual")
    assert said == []
