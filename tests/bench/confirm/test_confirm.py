"""The command from start to end against the simulator over HTTP: kept, gone on with, capped and interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from bench._lib.paths import ROOT
from bench.confirm.__main__ import main
from bench.confirm.rows import SHIPPED, Sizes, whole_task
from bench.confirm.section import answer, section
from flowevolve.journal.lock import Lock
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

SMALL = ("--calls", "24", "--train", "8", "--validation", "4", "--held-out", "6", "--max-tokens", "2000")
TOKENS = ("--tokens", "100_000_000")


class Served:
    """A simulated server that keeps what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "POST":
            self.asked.append((await request.read()).decode())
        return await handler(request)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    served = Served()
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"])
    middleware = web.middleware(served)
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve(backend, middlewares=[middleware])) as served.url,
    ):
        yield served


def confirm(server: Served, out: Path, *more: str) -> tuple[int, str]:
    """The exit code, and what was said."""
    said: list[str] = []
    code = main(["--base-url", server.url, "--model", "simulated", "--out", str(out), *SMALL, *more], said.append)
    return code, "\n".join(said)


def test_a_run_is_kept_and_gone_on_with(server: Served, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "result.json"
    server.asked.clear()
    more = (*TOKENS, "--json", str(file))
    code, said = confirm(server, out, *more, "--repeats", "1")
    assert code == 0
    assert "**can't tell**: 1 of at least 3 repeats" in said
    content: dict[str, Any] = json.loads(file.read_text())
    (repeat,) = content["rows"][SHIPPED]["repeats"]
    assert {"seed", "gepa", "defaults", "half"} == repeat["scores"].keys()
    assert {len(scores) for scores in repeat["scores"].values()} == {6}
    assert repeat["calls"]["defaults"] <= 24 <= repeat["calls"]["gepa"]
    assert content["paid"]["requests"] == len(server.asked), "what was paid is what the server was asked"
    assert "All answers are those of the model at the endpoint" in section(content)
    assert answer(content) == "of 3 claims 0 confirmed, 0 refuted, 3 can't tell, by `simulated`"
    assert "Paid in all" in section(content)
    code, said = confirm(server, out, *more, "--repeats", "2")
    assert (code, said.count("held out seed")) == (0, 1), "only the second repeat is made"
    again = json.loads(file.read_text())
    assert again["rows"][SHIPPED]["repeats"][0] == repeat
    assert len(again["rows"][SHIPPED]["repeats"]) == 2


def test_a_rehearsal_starts_its_own_server_and_judges_no_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "result.json"
    given = ["--rehearse-on", "sim", *SMALL, *TOKENS, "--repeats", "1", "--json", str(file)]
    assert main(given) == 0
    assert "**This is a rehearsal, on the simulator" in capsys.readouterr().out
    content: dict[str, Any] = json.loads(file.read_text())
    assert "says nothing of the" in section(content)
    assert "python -m bench.confirm --rehearse-on sim --tokens 100000000 --repeats 1 --calls 24 " in section(content)
    assert answer(content).startswith("it ran: 1 repeat, counted as ")
    assert "nothing was paid" in answer(content)
    assert "Counted in all" in section(content)


def test_neither_method_sees_a_row_that_is_held_out(server: Served, tmp_path: Path) -> None:
    server.asked.clear()
    confirm(server, tmp_path, *TOKENS, "--repeats", "1")
    whole = whole_task(SHIPPED, None, Sizes(8, 4, 6)).data
    held_out = [json.dumps(row.data["prompt"])[1:-1] for row in whole.test]
    places = [place for place, asked in enumerate(server.asked) if any(row in asked for row in held_out)]
    assert places == list(range(places[0], len(server.asked))), "they are asked last, and nothing else is then"


def test_a_cap_without_room_for_one_repeat_is_refused(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ("--input-price", "1", "--output-price", "1")
    code, _ = confirm(server, tmp_path, "--dollars", "0.03", *prices)
    error = capsys.readouterr().err
    assert code == 2
    assert error.startswith("the cap has no room for one repeat: it takes about 0.")
    assert "--calls and --held-out" in error
    assert not (tmp_path / SHIPPED).exists()


def test_the_cap_ends_a_run_in_its_middle(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.confirm.plan.SLACK", 0.02)  # a plan that errs
    code, said = confirm(server, tmp_path, "--tokens", "12_000")
    assert code == 0
    assert "Stopped: " in said
    assert "no repeat has been made" in said
    paid = [json.loads(line) for line in (tmp_path / "paid.jsonl").read_text().splitlines()]
    assert 0 < sum(sum(line["paid"]) for line in paid if "paid" in line) <= 12_000
    monkeypatch.undo()
    code, said = confirm(server, tmp_path, *TOKENS, "--repeats", "1")
    assert (code, said.count("held out seed")) == (0, 1), "with a higher cap it goes on"


def test_what_is_interrupted_is_gone_on_with(server: Served, tmp_path: Path) -> None:
    given = ["--base-url", server.url, "--model", "simulated", "--out", str(tmp_path), *SMALL, *TOKENS]
    command = [sys.executable, "-m", "bench.confirm", *given, "--repeats", "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("A repeat takes about")
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 130
    assert "Interrupted; the same command goes on." in said
    assert "can't tell" in said
    code, said = confirm(server, tmp_path, *TOKENS, "--repeats", "1")
    assert (code, said.count("held out seed")) == (0, 1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "give a cap: --dollars with --input-price and --output-price, or --tokens, or --minutes"),
        (("--dollars", "3"), "--dollars: needs --input-price and --output-price"),
        ((*TOKENS, "--rows", "ifbench"), "--rows ifbench: needs a folder with ifbench.jsonl as --data"),
        ((*TOKENS, "--calls", "7"), "--calls 7: the seed's validation takes 4; give at least twice that"),
        ((*TOKENS, "--held-out", "0"), "--held-out: is 0; at least 1 is needed"),
        ((*TOKENS, "--held-out", "9000"), "the sizes of the splits add up to 9012 rows"),
        ((*TOKENS, "--api-key-env", "NO_SUCH_KEY"), "the environment variable NO_SUCH_KEY is not set"),
        ((*TOKENS, "--base-url", "nonsense"), "llm.base_url: this is no address"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    server.asked.clear()
    code, _ = confirm(server, tmp_path, *more)
    assert code == 2
    assert said in capsys.readouterr().err
    assert not server.asked


def test_a_model_has_to_be_named(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--base-url", server.url, *TOKENS]) == 2
    assert capsys.readouterr().err == "--base-url: needs --model, the name of a model there\n"


def test_the_command_of_a_page_has_all_that_was_given(tmp_path: Path) -> None:
    file, cap = tmp_path / "made.json", ("--dollars", "0.5", "--input-price", "0.001", "--output-price", "0.001")
    given = ["--rehearse-on", "sim", *SMALL, *cap, "--temperature", "0.7", "--repeats", "1", "--json", str(file)]
    assert main(given, lambda said: None) == 0
    command = next(line for line in section(json.loads(file.read_text())).splitlines() if "bench.confirm" in line)
    assert " --dollars 0.5 --input-price P " in command
    assert " --temperature 0.7 " in command


@pytest.mark.parametrize("more", [("--model", "m"), ("--api-key-env", "A_KEY")])
def test_a_rehearsal_has_a_model_of_its_own(capsys: pytest.CaptureFixture[str], more: tuple[str, str]) -> None:
    assert main(["--rehearse-on", "sim", *SMALL, *TOKENS, *more]) == 2
    assert "leave out --model and --api-key-env" in capsys.readouterr().err


def test_two_in_one_folder_at_a_time_are_refused(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = Lock(tmp_path)
    server.asked.clear()
    code, _ = confirm(server, tmp_path, "--tokens", "1")
    assert code == 2
    assert f"{tmp_path}: process {os.getpid()} on " in capsys.readouterr().err
    assert not server.asked
    lock.release()
    assert confirm(server, tmp_path, "--tokens", "1")[0] == 0


def test_an_endpoint_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--out", str(tmp_path), *TOKENS]
    said: list[str] = []
    assert main(given, said.append) == 3
    assert capsys.readouterr().err.startswith("http://127.0.0.1:9/v1 can't be used: no connection")
    assert said == []


def test_other_settings_are_refused(server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    confirm(server, tmp_path, "--tokens", "1")
    capsys.readouterr()
    code, _ = confirm(server, tmp_path, "--tokens", "1", "--temperature", "0.5")
    assert code == 2
    assert "was begun with other settings (sampling was" in capsys.readouterr().err
