"""Runs of the throughput bench that were kept are taken from their folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench._lib import history
from bench._lib.methods.process import CEILING, Job
from bench._lib.methods.runs import Run, Server
from bench.throughput import measurements
from bench.throughput.kept import DRAWN_SECONDS, KeptRuns, Project, Trial, codes
from bench.throughput.measurements import Measured, Place, Plan, measure, on_places, speed_of
from tests.support.repository import Repository

PLACE = Place("gpt-4o-mini-api", "api")
PLAN = Plan(["gepa_sync", "lockstep", "lockstep_real"], ["aime", "hover"], 1, 2, 60.0, 64, seed=0, processes=1)
CODES: Mapping[Project, str] = {"ours": "abc", "others": "abc"}
TRIAL = Trial(PLACE.name, "aime", "lockstep", 0, 60.0, 64, "virtual")


@pytest.fixture(scope="module")
def measured() -> Measured:
    return measurements.run_virtually(TRIAL)


def test_what_is_kept_comes_back_as_it_was(measured: Measured, tmp_path: Path) -> None:
    kept = KeptRuns(tmp_path, CODES)
    assert not kept.has(TRIAL)
    kept.write(TRIAL, measured)
    assert KeptRuns(tmp_path, CODES).read(TRIAL) == measured
    assert not KeptRuns(tmp_path, {**CODES, "ours": "other code"}).has(TRIAL)
    assert KeptRuns(tmp_path, {**CODES, "others": "other code"}).has(TRIAL)
    assert not kept.has(replace(TRIAL, seconds=61.0))
    run, _ = measured
    assert all(span.begun < run.start + DRAWN_SECONDS and span.ended > run.start for span in run.spans)


def test_a_commit_that_decides_nothing_leaves_kept_runs_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "ROOT", tmp_path)

    repository = Repository(tmp_path)
    made = repository.commit("policies/staleness.py", "1")
    repository.commit("bench/throughput/section.py", "1")
    repository.commit("flowevolve/engine/recovery/replies.py", "1")
    assert codes() == {"ours": made, "others": ""}
    newer = repository.commit("bench/throughput/measurements.py", "1")
    assert codes() == {"ours": newer, "others": newer}
    newest = repository.commit("policies/flows.py", "1")
    assert codes() == {"ours": newest, "others": newer}, "what other projects' methods do does not depend on ours"


def test_without_a_folder_nothing_is_kept(measured: Measured) -> None:
    kept = KeptRuns(None, CODES)
    assert kept.write(TRIAL, measured) == measured
    assert not kept.has(TRIAL)


def test_a_measurement_that_was_interrupted_runs_only_what_is_left(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, plan = KeptRuns(tmp_path, CODES), replace(PLAN, methods=["lockstep"], workloads=["aime"])
    run, came_to = measured
    for seed in range(plan.virtual_repeats):
        kept.write(replace(TRIAL, seed=seed), measured)
        kept.write(replace(TRIAL, seed=seed, method=CEILING), (replace(run, method=CEILING), came_to))
    monkeypatch.setattr(measurements, "run_virtually", None)
    found = measure(PLACE, plan, kept)
    assert {key: len(each) for key, each in found.items()} == {("aime", "lockstep"): 2, ("aime", CEILING): 2}


def test_repeats_of_an_earlier_result_are_not_made_again(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {(PLACE.name, "aime", "lockstep"): 1, (PLACE.name, "aime", CEILING): 2, (PLACE.name, "aime", "gepa_sync"): 2}
    plan = replace(PLAN, methods=["lockstep", "gepa_sync"], workloads=["aime"], base_repeats=3, made=made)
    kept, (run, came_to) = KeptRuns(tmp_path, CODES), measured
    kept.write(replace(TRIAL, seed=1), measured)
    kept.write(Trial(PLACE.name, "aime", "gepa_sync", 2, 60.0, 64, "real"), (replace(run, method="gepa_sync"), came_to))
    monkeypatch.setattr(measurements, "run_virtually", None)
    monkeypatch.setattr(measurements, "execute", None)
    found = measure(PLACE, plan, kept)
    assert {key: len(each) for key, each in found.items()} == {("aime", "lockstep"): 1, ("aime", "gepa_sync"): 1}


def test_further_repeats_can_be_made_on_one_of_the_simulated_servers(tmp_path: Path, measured: Measured) -> None:
    kept, plan = KeptRuns(tmp_path, CODES), replace(PLAN, methods=["lockstep"], workloads=["aime"], virtual_repeats=1)
    run, came_to = measured
    kept.write(TRIAL, measured)
    kept.write(replace(TRIAL, method=CEILING), (replace(run, method=CEILING), came_to))
    found = on_places(PLACE.name, plan, kept)
    assert {place.name: len(each) for place, each in found.items()} == {"qwen3-8b-h100": 0, PLACE.name: 2}


def test_on_a_real_server_load_without_end_asks_again_what_the_stream_has_just_asked(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, jobs = "http://127.0.0.1:1/v1", list[tuple[str, bytes | None]]()
    run, _ = measured

    def execute(method: str, job: Job, server: Server, seconds: float) -> Run:
        jobs.append((method, None if job.again is None else Path(job.again).read_bytes()))
        return replace(run, method=method)

    @contextmanager
    def serving(*arguments: str) -> Iterator[Server]:
        yield Server(url)

    monkeypatch.setattr(measurements, "execute", execute)
    monkeypatch.setattr(measurements, "serving", serving)
    monkeypatch.setattr(Server, "requests", lambda self: b"[1]")
    kept, plan = KeptRuns(tmp_path, CODES), replace(PLAN, methods=["stream", "plain"], workloads=["aime"])
    for method in ("stream", "plain"):  # what the kept stream asked is not known any more
        kept.write(Trial("m", "aime", method, 0, 60.0, 64, "real", url), measured)
    found = measure(Place("m", "url", url), plan, kept)
    assert jobs == [("stream", None), (CEILING, b"[1]")]
    assert {key: len(each) for key, each in found.items()} == {
        ("aime", "stream"): 1,
        ("aime", "lockstep"): 1,
        ("aime", CEILING): 1,
    }


def test_a_run_that_had_to_wait_for_a_core_beside_others_is_made_again_alone(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = measured
    beside = threading.Barrier(2)
    made: list[tuple[str, str]] = []

    def execute(method: str, job: Job, server: Server, seconds: float) -> Run:
        again = (job.workload, method) in made
        made.append((job.workload, method))
        if not again:
            beside.wait(60)  # both at once
        waits = method == "gepa_pxn_8x8" and not again
        return replace(run, method=method, workload=job.workload, held_up=0.5 * run.end if waits else 0.0)

    @contextmanager
    def serving(*arguments: str) -> Iterator[Server]:
        yield Server("http://127.0.0.1:1/v1")

    monkeypatch.setattr(measurements, "execute", execute)
    monkeypatch.setattr(measurements, "serving", serving)
    monkeypatch.setattr(Plan, "virtual", lambda plan, place: [])
    plan = replace(PLAN, methods=["gepa_sync", "gepa_pxn_8x8"], workloads=["aime"], real_processes=2)
    kept = KeptRuns(tmp_path, CODES)
    found = measure(PLACE, plan, kept)
    assert [came_to.held_up_share for ((_, came_to),) in found.values()] == [0.0, 0.0]
    assert made[2:] == [("aime", "gepa_pxn_8x8")]
    assert all(kept.has(Trial(PLACE.name, "aime", each, 0, 60.0, 64, "real")) for each in plan.methods)


def test_what_needs_much_cpu_time_has_a_slower_server() -> None:
    assert speed_of(PLACE, "aime", "turbogepa") == pytest.approx(speed_of(PLACE, "aime", "gepa_sync") / 3)
    assert speed_of(Place("m", "url", "http://127.0.0.1:1/v1"), "aime", "turbogepa") == 1


def test_on_a_simulated_server_only_others_methods_and_the_comparison_of_clocks_take_real_time() -> None:
    assert PLAN.virtual(PLACE) == ["lockstep", CEILING]
    assert PLAN.real(PLACE) == ["gepa_sync", "lockstep_real"]
    server = Place("m", "url", "http://127.0.0.1:1/v1")
    assert PLAN.virtual(server) == []
    assert PLAN.real(server) == ["gepa_sync", "lockstep", CEILING]


def test_what_everything_is_beside_may_have_more_repeats(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptRuns(tmp_path, CODES)
    plan = replace(PLAN, methods=["gepa_sync", "gepa_pxn_8x8"], workloads=["aime"], base_repeats=3)
    run, came_to = measured
    for method, repeats in (("gepa_sync", 3), ("gepa_pxn_8x8", 1)):
        for seed in range(repeats):
            trial = Trial(PLACE.name, "aime", method, seed, 60.0, 64, "real")
            kept.write(trial, (replace(run, method=method), came_to))
    monkeypatch.setattr(Plan, "virtual", lambda plan, place: [])
    found = measure(PLACE, plan, kept)
    assert {method: len(each) for (_, method), each in found.items()} == {"gepa_sync": 3, "gepa_pxn_8x8": 1}
