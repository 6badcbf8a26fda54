"""The world's words at a real server's speed, and what a GPU says of itself, against stand-ins for both."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import aiohttp
import anyio.lowlevel
import pytest
from aiohttp import web
from hypothesis import given, strategies as st

from bench._lib.methods.figures import Moment, figures
from bench._lib.methods.runs import Run
from bench.gpu import __main__ as gpu, engine as gpu_engine
from bench.gpu.__main__ import parse, wanted_of
from bench.gpu.engine import sizes
from bench.gpu.predictions import read_before
from bench.gpu.results import content
from bench.gpu.runs import Measured, Measurements
from bench.gpu.service import Dialect, Engine, token_ids, worded
from bench.gpu.watch import Sample, Watch, gpu_name, read_sample, watch_gpu
from flowevolve._util.errors import InputError
from flowevolve.sim.profiles import BatchingProfile, OutputLength

pytestmark = pytest.mark.anyio

SLOW = BatchingProfile(
    OutputLength(0.0, 0.0, 1), ((1, 0.03), (16, 0.032)), 0.0001, 0.00003, max_num_seqs=64, cache_blocks=1000
)
FIGURES = figures(
    Run("", "", start=0.0, end=60.0, spans=(), accepted=(), validated=(), client_cpu=0.0, server_cpu=0.0, speed=1.0)
)
"""Of a run in which nothing happened."""
LENGTHS = OutputLength(median=50.0, sigma=0.5, most=400)


class FakeEngine:
    """Writes as many tokens as asked for, or what ``says`` has."""

    def __init__(self, status: int = 200, **says: object) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._status = status
        self._says = says

    async def completions(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.bodies.append(body)
        usage = {"prompt_tokens": 3, "completion_tokens": body["max_tokens"], **self._says}
        return web.json_response({"choices": [{"text": "unused7"}], "usage": usage}, status=self._status)

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(text="vllm:num_requests_waiting 4\n")


@asynccontextmanager
async def offered(engine: FakeEngine, dialect: Dialect = "vllm", context: int = 4096) -> AsyncGenerator[str]:
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/completions", engine.completions)
    app.router.add_get("/metrics", engine.metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        async with worded(Engine(url, "m", dialect, context, 2048), LENGTHS) as front:
            yield front
    finally:
        await runner.cleanup()


async def ask(url: str, text: str, **more: object) -> tuple[int, dict[str, Any]]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    async with aiohttp.ClientSession() as session, session.post(url + "/chat/completions", json=body) as response:
        return response.status, await response.json()


async def test_the_world_answers_and_the_engine_writes_as_many_tokens() -> None:
    engine = FakeEngine()
    async with offered(engine) as url:
        status, answer = await ask(url, "Write about rivers.", seed=3, priority=5)
        _, again = await ask(url, "Write about rivers.", seed=3, priority=5)
        _, other = await ask(url, "Write about rivers.", seed=4)
    assert status == 200
    assert "unused7" not in answer["choices"][0]["message"]["content"]
    first, second, third = engine.bodies
    assert first["max_tokens"] == answer["usage"]["completion_tokens"]
    assert first["ignore_eos"] is True
    assert first["priority"] == 5
    assert len(first["prompt"]) == 5  # 19 characters
    assert first == second
    assert answer["choices"] == again["choices"]
    assert third["prompt"] == first["prompt"]
    assert third["max_tokens"] == other["usage"]["completion_tokens"]


async def test_what_does_not_fit_the_context_is_left_out() -> None:
    engine = FakeEngine()
    async with offered(engine, context=20) as url:
        await ask(url, "x" * 60)
        await ask(url, "x" * 600)
    assert [(len(body["prompt"]), body["max_tokens"]) for body in engine.bodies] == [(15, 5), (19, 1)]


async def test_transformers_gets_the_text_and_nothing_that_it_does_not_know() -> None:
    engine = FakeEngine()
    async with offered(engine, "transformers") as url:
        await ask(url, "Write about rivers.", priority=5)
    assert engine.bodies[0].keys() == {"model", "max_tokens", "temperature", "prompt"}
    assert engine.bodies[0]["prompt"] == "Write about rivers."


@pytest.mark.parametrize(
    ("status", "says", "expected"), [(503, {}, 503), (400, {}, 500), (200, {"completion_tokens": 1}, 500)]
)
async def test_an_engine_that_does_not_do_it_is_not_counted(
    status: int, says: dict[str, object], expected: int
) -> None:
    async with offered(FakeEngine(status, **says)) as url:
        found, answer = await ask(url, "Write about rivers.")
    assert found == expected
    assert "error" in answer


async def test_the_load_is_what_the_engine_says() -> None:
    async with (
        offered(FakeEngine()) as url,
        aiohttp.ClientSession() as session,
        session.get(url.removesuffix("/v1") + "/metrics") as response,
    ):
        assert await response.text() == "vllm:num_requests_waiting 4\n"


@given(st.text(max_size=200), st.text(max_size=50), st.integers(100, 5000))
def test_equal_beginnings_are_equal_tokens(text: str, more: str, vocabulary: int) -> None:
    ids, longer = token_ids(text, vocabulary), token_ids(text + more, vocabulary)
    assert all(16 <= each < vocabulary for each in longer)
    assert longer[: len(text) // 4] == ids[: len(text) // 4]
    assert len(ids) == max(1, -(-len(text) // 4))


def test_the_sizes_of_a_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 100, "max_position_embeddings": 40960}')
    assert sizes(tmp_path) == (16384, 100)
    with pytest.raises(InputError, match=r"missing/config\.json: not a model's configuration .* name a folder"):
        sizes(tmp_path / "missing")


def test_a_result_has_rows_ratios_and_the_gpu(nvidia_smi: None) -> None:
    came_to = replace(FIGURES, proposals_per_min=2.0)
    faster = replace(came_to, proposals_per_min=12.0)
    busy = {"utilization_percent": 91.0}
    found = Measurements()
    found.runs |= {("hover", "stream"): [Measured(faster, busy)], ("hover", "gepa_sync"): [Measured(came_to, None)]}
    arguments = parse(["--minutes", "1", "--", "--dtype=bfloat16"])
    made = content(found, arguments, wanted_of(arguments))
    rows, ratios, settings, machine = (made[name] for name in ("rows", "ratios", "settings", "machine"))
    assert isinstance(rows, list)
    assert isinstance(ratios, dict)
    assert isinstance(settings, dict)
    assert isinstance(machine, dict)
    assert [(row["method"], row["proposals_per_min"], row["gpu"]) for row in rows] == [
        ("gepa_sync", 2.0, [None]),
        ("stream", 12.0, [busy]),
    ]
    assert ratios["stream_vs_gepa_sync_gpu"] == 6.0
    assert (settings["shape"], settings["flags"]) == ("qwen3-8b-shape", ["--dtype=bfloat16"])
    assert machine["gpu"] == "H100, 550.1"
    assert made["profile"] is None
    assert settings["predicted_before"] is False


def test_a_result_has_what_candidates_are_worth_and_what_was_predicted_before(
    tmp_path: Path, nvidia_smi: None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "before.json"
    file.write_text('{"rows": []}')
    assert gpu.main(["--predicted", str(file)]) == 2
    assert f"{file}: has no predictions; make them with --predict" in capsys.readouterr().err
    predicted = {"profile": "measured", "workload": "hover", "method": "stream", "values": {"best_score": [0.5]}}
    file.write_text(json.dumps({"profile": asdict(SLOW), "predicted": [predicted]}))
    moments = (Moment(0.0, 10, 500, "Answer."), Moment(7.5, 20, 1000, "Answer in at most 5 words."))
    found = Measurements()
    found.runs["hover", "stream"] = [Measured(replace(FIGURES, moments=moments), None)]
    for arguments, is_known in ((parse([]), True), (parse(["--model", "m"]), False)):
        made = content(found, arguments, wanted_of(arguments), read_before(file))
        assert made["profile"] == asdict(SLOW)
        assert made["predicted"] == [predicted]
        rows = made["rows"]
        assert isinstance(rows, list)
        held_out = [spent[:3] for run in rows[0]["held_out"] for spent in run]
        assert held_out == ([(0.0, 10, 500), (7.5, 20, 1000)] if is_known else [])


def test_the_runs_of_a_result_are_predicted_from_its_profile_alone(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    result = {
        "rows": [{"workload": "aime", "method": "flashevolve", "output_tokens_per_s": 1.0}],
        "settings": {"minutes": 1.0, "concurrency": 16},
        "profile": asdict(SLOW),
    }
    file.write_text(json.dumps(result))
    assert gpu.main(["--predict", str(file)]) == 0
    written = json.loads(file.read_text())
    assert written["rows"] == result["rows"]
    measured, shipped = written["predicted"]
    assert (measured["profile"], shipped["profile"]) == ("measured", "shipped")
    # at 32 ms a step, 16 answers get at most 500 tokens a second; the shipped profile has steps of 8.5 ms
    assert all(200 < each <= 500 for each in measured["values"]["output_tokens_per_s"])
    assert all(1000 < each <= 1900 for each in shipped["values"]["output_tokens_per_s"])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "not a result of this command"),
        ('{"rows": [], "settings": {"minutes": 1, "concurrency": 8}, "profile": null}', "its server was not measured"),
    ],
)
def test_what_can_not_be_predicted_is_said_in_a_line(
    written: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gpu.json"
    file.write_text(written)
    assert gpu.main(["--predict", str(file)]) == 2
    assert f"{file}: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shape", "nowhere"], "nowhere/config.json: not a model's configuration"),
        (
            ["--model", "m", "--environment", "no-such-command"],
            "vllm.executable: there is no command 'no-such-command'",
        ),
        (["--environment", "no-such-command"], "vllm.executable: there is no command 'no-such-command'"),
    ],
)
def test_what_is_missing_is_said_in_a_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_engine, "SHAPE", tmp_path / "shape")
    monkeypatch.setattr(gpu, "SHAPE", tmp_path / "shape")
    assert gpu.main([*arguments, "--log", str(tmp_path / "log")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two samples and silence; its name where it is asked for that."""
    script = tmp_path / "nvidia-smi"
    script.write_text(
        "#!/bin/sh\n"
        'case "$*" in *name*) echo "H100, 550.1"; exit;; esac\n'
        'echo "90, 1000, 600.0"\necho "50, 3000, [N/A]"\necho "70, 2000, 400.0"\nexec cat\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("nvidia_smi")
async def test_a_gpu_is_sampled_while_something_runs() -> None:
    async with watch_gpu() as watch:
        while len(watch.samples) < 2:
            await anyio.lowlevel.checkpoint()
    assert [(each.utilization, each.memory, each.watts) for each in watch.samples] == [(90, 1000, 600), (70, 2000, 400)]


@pytest.mark.usefixtures("nvidia_smi")
def test_the_gpu_has_a_name() -> None:
    assert gpu_name() == "H100, 550.1"


async def test_without_a_gpu_there_are_no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    async with watch_gpu() as watch:
        pass
    assert watch.between(0, 1e9) is None


def test_a_time_is_summed_up() -> None:
    watch = Watch()
    watch.samples = [Sample(1.0, 10.0, 100.0, 50.0), Sample(2.0, 80.0, 900.0, 500.0), Sample(3.0, 100.0, 800.0, 700.0)]
    assert watch.between(1.5, 3.0) == {"utilization_percent": 90, "memory_mib": 900, "watts": 600, "samples": 2}
    assert watch.between(5.0, 6.0) is None
    assert read_sample("nonsense", 0.0) is None
