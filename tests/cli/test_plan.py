"""``flowevolve plan``: a table or JSON, and one line for a mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flowevolve.runner.forecast.forecast import SCHEMA
from tests.support.command import Done, flowevolve

CONFIG = """
preset = "plain"
[llm]
backend = "openai"
base_url = "http://127.0.0.1:9/v1"
model = "m"
[llm.prices.m]
input = 1
output = 4
[budget]
proposals = 2
"""
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "plan.md"


def plan(folder: Path, *arguments: str) -> Done:
    (folder / "run.toml").write_text(CONFIG)
    return flowevolve("plan", "run.toml", *arguments, cwd=folder)


def test_rows_what_limits_them_and_which_to_take_are_printed(tmp_path: Path) -> None:
    done = plan(tmp_path, "--profiles", "qwen3-8b-h100", "--widths", "4,16")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^width +hours +tokens in +tokens out +dollars +proposals +limited by", done.stdout, re.MULTILINE)
    assert re.search(r"^4 ", done.stdout, re.MULTILINE)
    assert "width: as many requests are in flight as llm.concurrency allows" in done.stdout
    assert "the run is ended by budget.proposals" in done.stdout
    assert "take width 16 on qwen3-8b-h100 with m" in done.stdout
    assert "simulating 2 of 2" in done.stderr


def test_a_server_stands_below_the_width_where_there_are_several(tmp_path: Path) -> None:
    done = plan(tmp_path, "--profiles", "qwen3-8b-h100,instant", "--widths", "4")
    assert re.search(r"^4 .*\nqwen3-8b-h100 +[\d.]+–", done.stdout, re.MULTILINE)
    assert max(map(len, done.stdout.splitlines()[:5])) <= 80


def test_json_is_as_the_reference_says(tmp_path: Path) -> None:
    done = plan(tmp_path, "--profiles", "qwen3-8b-h100", "--json")
    found = json.loads(done.stdout)
    assert found["schema"] == SCHEMA
    named = set(re.findall(r"^\| `(\w+)` \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {*found, *found["rows"][0], *found["rows"][0]["hours"]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a profile of the server that will answer, with --profiles"),
        (("--profiles", "nowhere.toml"), "nowhere.toml: no such file"),
        (("--profiles", "instant", "--widths", "8,many"), "'many' is not a whole number"),
        (("--profiles", "instant", "--set", "task.name=none"), "task"),
        (("--profiles", "instant", "--lengths", "runs/none"), "runs/none"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = plan(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
