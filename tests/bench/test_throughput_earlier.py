"""Repeats of the throughput bench that are added to an earlier result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench._lib.methods.figures import figures
from bench._lib.methods.process import CEILING
from bench._lib.time_to_score import Row
from bench.throughput.earlier import read, repeats_of
from bench.throughput.measurements import Measured, Measurements, Place, Plan, speed_of
from bench.throughput.results import content
from bench.throughput.section import section
from flowevolve._util.errors import InputError
from tests.support.recordings import run, span

PLACE = Place("qwen3-8b-h100", "vllm")
OTHER = Place("gpt-4o-mini-api", "api")
PLAN = Plan(["gepa_sync", "stream"], ["aime"], 1, 1, 600.0, 64, seed=0, processes=1)
MORE = replace(PLAN, virtual_repeats=3)


def measured(method: str, proposals: int) -> Measured:
    spans = [span(n, n + 1, 50, "reflection") for n in range(proposals)] + [span(0, 90, 900)]
    one = replace(run(*spans, method=method), fresh=False)
    return one, figures(one)


def measurements(**methods: list[int]) -> Measurements:
    return {("aime", method): [measured(method, each) for each in proposals] for method, proposals in methods.items()}


def made(plan: Plan, before: Mapping[str, object] | None = None, **methods: list[int]) -> dict[str, object]:
    return content({PLACE: measurements(**methods)}, plan, "python -m bench.throughput", before)


@pytest.fixture
def earlier() -> dict[str, object]:
    return made(PLAN, gepa_sync=[2], stream=[12], ceiling=[0])


def listed(content: Mapping[str, object]) -> list[Row]:
    rows = content["rows"]
    assert isinstance(rows, list)
    return rows


def written(content: object, folder: Path) -> Path:
    file = folder / "earlier.json"
    file.write_text(json.dumps(content))
    return file


def test_of_added_repeats_and_those_before_comes_what_all_at_once_come_to(
    earlier: dict[str, object], tmp_path: Path
) -> None:
    before = read(written(earlier, tmp_path), MORE)
    added = made(MORE, before, stream=[10, 20], ceiling=[0, 0])
    at_once = made(MORE, gepa_sync=[2], stream=[12, 10, 20], ceiling=[0, 0, 0])
    assert json.loads(json.dumps(added | {"earlier": []})) == json.loads(json.dumps(at_once))
    assert repeats_of(before) == {(PLACE.name, "aime", each): 1 for each in ("gepa_sync", "stream", CEILING)}


def test_repeats_on_one_server_leave_those_on_the_other_as_they_are(earlier: dict[str, object], tmp_path: Path) -> None:
    before = read(written(earlier, tmp_path), MORE)
    added = content({PLACE: {}, OTHER: measurements(gepa_sync=[3])}, MORE, "python -m bench.throughput", before)
    made = [(row["server"], row["method"], row["repeats"]) for row in listed(added)]
    assert made == [*((PLACE.name, row["method"], 1) for row in listed(earlier)), (OTHER.name, "gepa_sync", 1)]


def test_a_method_can_be_added(earlier: dict[str, object], tmp_path: Path) -> None:
    with_another = replace(PLAN, methods=["gepa_sync", "agentdescent_merging", "stream"])
    added = made(with_another, read(written(earlier, tmp_path), with_another), agentdescent_merging=[7])
    at_once = made(with_another, gepa_sync=[2], agentdescent_merging=[7], stream=[12], ceiling=[0])
    assert json.loads(json.dumps(added | {"earlier": []})) == json.loads(json.dumps(at_once))


@pytest.mark.parametrize(
    ("ours", "others", "said"),
    [
        ("abc", "abc", " What decides the runs has not changed since commit abc."),
        ("def", "abc", " has not changed since commit def, for other projects' methods since abc."),
        ("def", "def", ""),
    ],
)
def test_the_page_names_the_commit_of_what_was_measured(
    ours: str, others: str, said: str, earlier: dict[str, object]
) -> None:
    page = section({**earlier, "commit": "def", "code": {"ours": ours, "others": others}}).replace("\n", " ")
    assert said in page
    assert ("What decides" in page) == bool(said)


def test_the_page_says_where_and_when_the_repeats_before_were_made(earlier: dict[str, object], tmp_path: Path) -> None:
    earlier |= {"commit": "abc", "date": "2026-11-27"}
    added = made(MORE, read(written(earlier, tmp_path), MORE), stream=[10, 20], ceiling=[0, 0])
    assert "The first repeats were made at abc on 2026-11-27, with the same kind of processor." in section(added)
    more = made(
        MORE,
        {**added, "commit": "def", "machine": {"model": "Other"}, "taken": ["ours", "others"]},
        stream=[10, 20],
        ceiling=[0, 0],
    )
    page = section(more)
    assert "at abc on 2026-11-27 and def on" in page
    assert "with other processors (" in page


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (replace(MORE, seconds=1200.0), "minutes: 10.0 there, 20.0 here"),
        (replace(MORE, methods=["stream"]), "has methods that were not asked for: gepa_sync"),
        (replace(MORE, workloads=["aime", "hover"]), "workloads: "),
        (replace(MORE, seed=1), "seed: 0 there, 1 here"),
    ],
)
def test_a_result_that_was_made_otherwise_is_refused(
    plan: Plan, said: str, earlier: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        read(written(earlier, tmp_path), plan)
    assert said in str(refused.value)


def test_a_result_of_other_code_is_refused(earlier: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="was made with other code: "):
        read(written(earlier | {"code": {"ours": "abc", "others": "abc"}}, tmp_path), MORE)


def test_if_our_code_has_changed_only_the_repeats_of_other_projects_are_taken(
    earlier: dict[str, object], tmp_path: Path
) -> None:
    code = earlier["code"]
    assert isinstance(code, dict)
    earlier |= {"code": {**code, "ours": "abc"}, "commit": "abc", "date": "2026-11-27"}
    before = read(written(earlier, tmp_path), MORE)
    assert repeats_of(before) == {(PLACE.name, "aime", "gepa_sync"): 1}
    added = made(MORE, before, stream=[10, 20, 30], ceiling=[0, 0, 0])
    at_once = made(MORE, gepa_sync=[2], stream=[10, 20, 30], ceiling=[0, 0, 0])
    assert json.loads(json.dumps(added | {"earlier": []})) == json.loads(json.dumps(at_once))
    assert "repeats were made at abc on 2026-11-27 (of other projects' methods), with" in section(added)


def test_the_real_time_of_repeats_that_are_made_again_is_not_counted(
    earlier: dict[str, object], tmp_path: Path
) -> None:
    plan = replace(PLAN, methods=["gepa_sync", "stream_real"])
    earlier = made(plan, gepa_sync=[2], stream_real=[12])
    settings, code = earlier["settings"], earlier["code"]
    assert isinstance(settings, dict)
    assert isinstance(code, dict)
    settings["real_minutes"] = 1.0
    before = read(written(earlier | {"code": {**code, "ours": "abc"}}, tmp_path), plan)
    took = plan.seconds / 60 / speed_of(PLACE, "aime", "stream_real")
    assert before["settings"]["real_minutes"] == pytest.approx(1.0 - took)


def test_a_result_with_more_repeats_than_were_asked_for_is_refused(tmp_path: Path) -> None:
    file = written(made(MORE, gepa_sync=[2], stream=[12, 10, 20], ceiling=[0, 0, 0]), tmp_path)
    with pytest.raises(InputError, match="has more repeats than were asked for: virtual_repeats 3"):
        read(file, PLAN)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result that can be read"):
        read(tmp_path / "none.json", MORE)
