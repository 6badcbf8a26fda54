"""docs/algorithms: a page for each algorithm, which agrees with the code."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from flowevolve.config.run import parse_config
from flowevolve.core.algorithm import Algorithm
from flowevolve.runner.assemble import find_algorithm, make_algorithm, make_task
from flowevolve.runner.registries import ALGORITHMS

DOCS = Path(__file__).parents[2] / "docs" / "algorithms"
SHIPPED = sorted(listed.name for listed in ALGORITHMS.listing() if listed.package is None)
BASELINES = {"best_of_n", "one_plus_lambda"}
"""Those without a page of their own."""
WITH_PAGE = sorted(set(SHIPPED) - BASELINES)
HEADINGS = [
    "How to run it",
    "How it works",
    "Settings that matter",
    "How it differs from the paper",
    "What was measured here",
]
ROW = {"text": "It fails.", "label": "bug", "subject": "It", "body": "fails", "queue": "a", "question": "1 + 1"}


def page(name: str) -> str:
    return (DOCS / f"{name.replace('_', '-')}.md").read_text(encoding="utf-8")


def parts(name: str) -> dict[str, str]:
    """The sections of a page by their headings."""
    titles = re.split(r"^## (.+)$", page(name), flags=re.MULTILINE)[1:]
    return dict(zip(titles[::2], titles[1::2], strict=True))


def algorithm_class(name: str) -> type[Algorithm]:
    return find_algorithm(parse_config({"algorithm": {"name": name}, "budget": {"seconds": 1}}, name))


def shown(name: str) -> dict[str, object]:
    """The config that a page shows first."""
    block, *_ = re.findall(r"^```toml\n(.*?)^```", parts(name)["How to run it"], re.MULTILINE | re.DOTALL)
    return tomllib.loads(block)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_algorithm_says_in_two_lines_for_whom_it_is(name: str) -> None:
    lines = algorithm_class(name).suits.split("\n")
    assert len(lines) == 2
    assert all(20 < len(line) <= 100 and line.endswith(".") for line in lines)


def test_there_is_a_page_for_each_algorithm() -> None:
    assert {file.stem.replace("-", "_") for file in DOCS.glob("*.md")} == {"index", *WITH_PAGE}


@pytest.mark.parametrize("name", WITH_PAGE)
def test_a_page_begins_with_the_two_lines_and_has_all_parts(name: str) -> None:
    quoted = "".join(f"> {line}\n" for line in algorithm_class(name).suits.split("\n"))
    assert page(name).split("\n\n")[1] + "\n" == quoted
    assert list(parts(name)) == HEADINGS


@pytest.mark.parametrize("name", SHIPPED)
def test_the_index_has_the_same_lines(name: str) -> None:
    (row,) = [line for line in page("index").splitlines() if f"| [`{name}`]" in line]
    assert algorithm_class(name).suits.replace("\n", " ") in row


@pytest.mark.parametrize("name", WITH_PAGE)
def test_the_config_of_a_page_is_valid_and_its_picture_has_all_stages(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, file in enumerate(("tickets.jsonl", "train.jsonl", "val.jsonl")):
        rows = [{**ROW, "answer": f"{number}.{row}", "id": f"{number}-{row}"} for row in range(240)]
        (tmp_path / file).write_text("\n".join(map(json.dumps, rows)))
    config = parse_config(shown(name), name)
    assert config.algorithm.name == name
    stages = {stage.name for stage in make_algorithm(config, make_task(config)).graph().stages}
    assert stages <= set(re.findall(r"\w+", parts(name)["How it works"])), "a stage is not shown"


@pytest.mark.parametrize("name", WITH_PAGE)
def test_the_settings_that_a_page_tells_of_exist(name: str) -> None:
    told = re.findall(r"^\| `(\w+)` \|", parts(name)["Settings that matter"], re.MULTILINE)
    assert told
    assert set(told) <= set(algorithm_class(name).config_type.model_fields)
