"""Runs and the command line on a vLLM of their own, with the fake command."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest
import tomli_w

from flowevolve._util.errors import BackendUnreachableError, InputError
from flowevolve._util.tasks import Pulse
from flowevolve.config.roles import role_settings
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.engine.engine import Engine
from flowevolve.runner.check import check
from flowevolve.runner.run import Watchers, run
from flowevolve.runner.vllm_server import open_server
from flowevolve.vllm.server import ServerChange
from tests.vllm.conftest import ROOT, FakeVLLM

pytestmark = pytest.mark.anyio


def table(fake: FakeVLLM, *fates: str, **vllm: object) -> dict[str, object]:
    return {
        "llm": {"backend": "vllm", "model": "m"},
        "vllm": {**fake.settings(*fates), **vllm},
        "scheduler": {"admission": {"policy": "fixed", "interval_seconds": 0.05}},
        "budget": {"proposals": 3},
    }


def config(fake: FakeVLLM, *fates: str, **vllm: object) -> Config:
    return parse_config(table(fake, *fates, **vllm), "test")


def events(out: Path, kind: str) -> list[str]:
    with sqlite3.connect(out / "journal.sqlite") as journal:
        return [row[0] for row in journal.execute("SELECT data FROM events WHERE kind = ?", (kind,))]


async def test_what_a_watcher_of_servers_raises_ends_the_run_as_it_is(fake: FakeVLLM, tmp_path: Path) -> None:
    def broken(change: ServerChange) -> None:
        raise ZeroDivisionError("the watcher's own")

    with pytest.raises(ZeroDivisionError, match="the watcher's own"):
        await run(config(fake), out=tmp_path / "out", watchers=Watchers(servers=(broken,)))


async def test_a_run_starts_its_server_looks_at_it_and_ends_it(fake: FakeVLLM, tmp_path: Path) -> None:
    out, server_changes = tmp_path / "out", list[ServerChange]()
    result = await run(config(fake), out=out, watchers=Watchers(servers=(server_changes.append,)))
    assert result.report.spent.proposals >= 3
    assert not result.simulated
    assert [each.kind for each in server_changes] == ["healthy"]
    assert "loading" in (out / "vllm.log").read_text()
    written = json.loads((out / "result.json").read_text())
    assert written["backend"] == "vllm"
    assert written["server"]["looks"] >= 1
    assert written["server"]["restarts"] == 0
    assert len(events(out, "server.healthy")) == 1
    assert len(events(out, "server.load")) == written["server"]["looks"]
    assert fake.alive() == []


async def test_a_run_outlives_its_server(fake: FakeVLLM, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = await run(config(fake, "die_after_40", "serve"), out=out)
    assert result.report.stop_reason == "proposals"
    assert result.llm.failed == 0
    assert result.llm.retries >= 1
    assert result.server is not None
    assert result.server.restarts == 1
    assert len(events(out, "server.died")) == 1
    assert len(events(out, "server.healthy")) == 2
    assert fake.alive() == []


@pytest.mark.parametrize("noticed_by", ["metrics", "time-out"])
async def test_a_run_outlives_its_servers_hanging(
    fake: FakeVLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed_by: str
) -> None:
    monkeypatch.setattr("flowevolve.llm.scheduling.metrics_probe.PROBE_SECONDS", 0.2)
    settings = table(fake, hung_seconds=0.3, stop_seconds=0.2)
    if noticed_by == "time-out":
        settings["llm"] = {"backend": "vllm", "model": "m", "timeout_seconds": 1.0}
        settings["scheduler"] = {"admission": {"policy": "fixed", "interval_seconds": 3600.0}}
    calls = 0

    def stop_it(record: CallRecord) -> None:
        nonlocal calls
        calls += 1
        if calls == 40:
            os.kill(fake.starts()[0].pids[0], signal.SIGSTOP)

    result = await run(parse_config(settings, "test"), out=tmp_path / "out", watchers=Watchers(calls=(stop_it,)))
    assert result.report.stop_reason == "proposals"
    assert result.llm.failed == 0
    assert result.server is not None or noticed_by == "time-out"
    [died] = events(tmp_path / "out", "server.died")
    assert "was not healthy for 0.3 s" in died
    assert fake.alive() == []


async def test_requests_are_shared_out_among_replicas(fake: FakeVLLM, tmp_path: Path) -> None:
    result = await run(config(fake, replicas=2), out=tmp_path / "out")
    first, second = result.traffic.endpoints
    assert first.requests > 0
    assert second.requests > 0
    assert first.url != second.url
    assert fake.alive() == []


async def test_roles_elsewhere_are_sent_no_priorities_for_our_server(fake: FakeVLLM) -> None:
    there = {"base_url": "http://there/v1"}
    models = [{"model": "a"}, {"model": "b", **there}]
    section = table(fake)
    section["llm"] = {
        "backend": "vllm",
        "model": "m",
        "roles": {"other": there, "asks": {**there, "send_priority": True}, "both": {"models": models}, "here": {}},
    }
    config = parse_config(section, "test")
    async with open_server(config, None, ()) as server:
        roles = server.serve(role_settings(config, ()))
    sent = {name: [model.llm.send_priority for model in role.models] for name, role in roles.items()}
    assert sent == {"other": [False], "asks": [True], "both": [True, False], "here": [True]}


async def test_a_server_that_is_given_up_ends_the_run_at_once(fake: FakeVLLM, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(BackendUnreachableError, match=r"not started again, after 1 restart$"):
        await run(config(fake, "die_after_10", "die", restarts=1), out=out)
    written = json.loads((out / "result.json").read_text())
    assert written["stop_reason"] == "failed"
    assert "ValueError: no such model" in written["error"]
    assert fake.alive() == []


async def test_without_a_directory_the_log_is_in_a_folder_that_stays(
    fake: FakeVLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(BackendUnreachableError, match=rf"{tmp_path}/flowevolve-\w+/vllm\.log") as raised:
        await run(config(fake, "die"))
    log = Path(str(raised.value).partition("(")[2].partition(":")[0])
    assert "no such model" in log.read_text()  # noqa: ASYNC240 - nothing else goes on


async def test_cached_replies_hold_for_another_port_but_not_for_other_flags(fake: FakeVLLM, tmp_path: Path) -> None:
    async def cached_calls(*flags: str) -> int:
        section = {**table(fake, flags=flags), "algorithm": {"max_in_flight": 1}}
        section["llm"] = {"backend": "vllm", "model": "m", "cache": {"path": str(tmp_path / "replies.sqlite")}}
        return (await run(parse_config(section, "test"))).llm.cached_calls

    assert await cached_calls() == 0
    assert await cached_calls() > 0
    assert await cached_calls("--dtype", "float32") == 0


async def test_check_names_ray_where_it_is_missing(fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowevolve.vllm.serving.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"vllm\.on: 'ray' needs Ray: pip install 'flowevolve\[ray\]'"):
        await check(config(fake, on="ray"))


async def test_a_replica_that_is_killed_is_asked_elsewhere_and_comes_back(fake: FakeVLLM, tmp_path: Path) -> None:
    heard, calls, told = list[ServerChange](), 0, Pulse()

    def kill_one(record: CallRecord) -> None:
        nonlocal calls
        calls += 1
        if calls == 40:
            os.kill(fake.starts()[0].pids[0], signal.SIGKILL)

    async def until_it_is_back(engine: Engine) -> None:
        with anyio.fail_after(180):
            while [each.kind for each in heard] != ["healthy", "healthy", "died", "healthy"]:
                await told.wait()
        engine.stop()

    def tell(change: ServerChange) -> None:
        if change.kind != "starting":
            heard.append(change)
            told.fire()

    settings = parse_config({**table(fake, replicas=2), "budget": {"hours": 1}}, "test")
    watchers = Watchers(calls=(kill_one,), servers=(tell,))
    result = await run(settings, out=tmp_path / "out", watchers=watchers, side_task=until_it_is_back)
    assert heard[2].url == heard[3].url
    assert result.llm.failed == 0
    assert calls > 40
    lost, other = sorted(result.traffic.endpoints, key=lambda each: each.failures, reverse=True)
    assert lost.url == heard[2].url
    assert lost.failures >= 1
    assert other.failures == 0
    assert fake.alive() == []


async def test_check_starts_nothing(fake: FakeVLLM) -> None:
    await check(config(fake))
    assert fake.starts() == []
    with pytest.raises(InputError, match=r"vllm\.executable"):
        await check(config(fake, executable=str(fake.folder / "nowhere" / "vllm")))


def flowevolve(*arguments: str, environment: Mapping[str, str] | None = None, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from flowevolve.cli.app import main; main()", *arguments]
    pipe = subprocess.PIPE
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.Popen(command, cwd=cwd, env=variables, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_serves_until_it_is_signalled(fake: FakeVLLM, number: signal.Signals, tmp_path: Path) -> None:
    environment = {"FAKE_NOTES": str(fake.notes)}
    arguments = ["serve", "m", "--executable", str(fake.folder), "--port", "0", "--", "--dtype", "float16"]
    with flowevolve(*arguments, environment=environment, cwd=tmp_path) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("m at"))
        assert "http://127.0.0.1:" in line
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert fake.starts()[0].arguments[-2:] == ["--dtype", "float16"]
    assert (tmp_path / "vllm.log").exists()
    assert fake.alive() == []


def test_serve_attached_to(fake: FakeVLLM, tmp_path: Path) -> None:
    """A run with a base URL uses the server that is there, and leaves it alone."""
    environment = {"FAKE_NOTES": str(fake.notes)}
    arguments = ["serve", "m", "--executable", str(fake.folder), "--port", "0"]
    with flowevolve(*arguments, environment=environment, cwd=tmp_path) as server:
        assert server.stdout is not None
        url = next(line for line in server.stdout if line.startswith("m at")).split()[2].rstrip(";")
        settings = {**table(fake), "llm": {"backend": "vllm", "model": "m", "base_url": url}}
        (tmp_path / "run.toml").write_text(tomli_w.dumps(settings))
        with flowevolve("run", "run.toml", "--out", "out", cwd=tmp_path) as process:
            said, trouble = process.communicate(timeout=120)
        assert process.returncode == 0, trouble
        assert f"m at {url}" in said
        assert len(fake.starts()) == 1
        assert len(fake.alive()) == 2
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    assert json.loads((tmp_path / "out" / "result.json").read_text())["server"] is not None
    assert not (tmp_path / "out" / "vllm.log").exists()


@pytest.mark.parametrize(
    ("fate", "arguments", "code", "says"),
    [
        ("serve", ["--port", "x"], 2, "--port"),
        ("serve", ["--port", "0", "--", "--port", "1"], 2, "--port is set by flowevolve; use vllm.port instead"),
        ("serve", ["--executable", "no-such-vllm"], 2, "pip install 'flowevolve[vllm]'"),
        ("die", ["--port", "0"], 3, "ValueError: no such model"),
        ("die_after_0", ["--port", "0", "--restarts", "0"], 3, "not started again"),
    ],
)
def test_serve_says_what_is_wrong_in_a_line(
    fake: FakeVLLM, fate: str, arguments: list[str], code: int, says: str, tmp_path: Path
) -> None:
    environment = {"FAKE_NOTES": str(fake.notes), "FAKE_FATES": fate, "PATH": f"{fake.folder}/bin:/bin:/usr/bin"}
    with flowevolve("serve", "m", *arguments, environment=environment, cwd=tmp_path) as process:
        assert process.stdout is not None
        if fate == "die_after_0":
            next(line for line in process.stdout if line.startswith("m at"))
            os.kill(fake.starts()[0].pids[0], signal.SIGKILL)
        _, trouble = process.communicate(timeout=60)
    assert process.returncode == code, trouble
    assert says in trouble
    assert "Traceback" not in trouble
    assert fake.alive() == []


def test_a_run_that_is_killed_takes_its_server_along(
    fake: FakeVLLM, tmp_path: Path, wait_for_death: Callable[[int], None]
) -> None:
    settings = {**table(fake), "budget": {"hours": 1}}
    (tmp_path / "run.toml").write_text(tomli_w.dumps(settings))
    with flowevolve("run", "run.toml", "--out", "out", cwd=tmp_path) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "best" in line)
        assert len(fake.alive()) == 2
        process.kill()
        process.communicate(timeout=60)
    for pid in fake.processes():
        wait_for_death(pid)
