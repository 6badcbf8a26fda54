"""docs/tutorial-algorithm.md: an algorithm of one's own in under 100 lines, from a package of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.runner.assemble import make_algorithm, make_task
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from tests.support.site_packages import pip_install

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "own_algorithm"
MODULE = PACKAGE / "one_plus_lambda.py"
PAGE = ROOT / "docs" / "tutorial-algorithm.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(PACKAGE)
    yield
    sys.modules.pop(MODULE.stem, None)


def test_it_is_under_100_lines() -> None:
    assert len(MODULE.read_text("utf-8").splitlines()) < 100


def test_the_page_shows_the_module_as_it_is() -> None:
    """Its blocks, in order, are all of the module; only empty lines stand between them."""
    rest = MODULE.read_text("utf-8")
    for block in blocks("python"):
        assert rest.startswith(block), f"the module goes on with\n{rest[:200]}\nand the page with\n{block[:200]}"
        rest = rest.removeprefix(block).lstrip("\n")
    assert rest == ""


def test_the_page_shows_the_entry_point_as_it_is() -> None:
    [block] = blocks("toml")
    assert block in (PACKAGE / "pyproject.toml").read_text("utf-8")


def test_in_lockstep_the_children_of_a_generation_have_one_parent() -> None:
    algorithm = {"name": "one_plus_lambda:OnePlusLambda", "mode": "sync", "children": 3}
    config = parse_config({"clock": "virtual", "algorithm": algorithm, "budget": {"proposals": 9}}, "test")
    parents: dict[int, set[str]] = defaultdict(set)

    def note(event: Event) -> None:
        if event.kind == "candidate.proposed" and event.data["operator"] == "reflect":
            parents[flow_of(str(event.data["item"]))].update(cast("list[str]", event.data["parents"]))

    async def go() -> Result:
        return await run(config, watchers=Watchers(events=(note,)))

    result = clock.run(go, clock="virtual")
    assert result.report.spent.proposals >= 9
    assert len(parents) >= 3
    assert {len(each) for each in parents.values()} == {1}


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_limit_on_proposals_is_not_passed_by_flows_of_several_children(mode: str) -> None:
    algorithm = {"name": "one_plus_lambda:OnePlusLambda", "mode": mode, "children": 4}
    config = parse_config({"clock": "virtual", "algorithm": algorithm, "budget": {"proposals": 10}}, "test")

    async def go() -> Result:
        return await run(config)

    result = clock.run(go, clock="virtual")
    assert (result.proposals, result.stop_reason) == (8, "proposals")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"children": 0}, r"algorithm\.children is 0, but has to be above 0"),
        ({"childern": 4}, r"algorithm\.childern: unknown key; did you mean 'children'"),
        ({"examples": 500}, r"algorithm\.examples: there are only 120 training examples"),
    ],
)
def test_its_settings_are_checked(setting: dict[str, int], says: str) -> None:
    sections = {"algorithm": {"name": "one_plus_lambda:OnePlusLambda", **setting}, "budget": {"proposals": 1}}
    config = parse_config(sections, "test")
    with pytest.raises(InputError, match=says):
        make_algorithm(config, make_task(config))


def test_installed_as_a_package_of_its_own_it_improves_on_the_seed(tmp_path: Path) -> None:
    source = shutil.copytree(PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    pip_install(source, tmp_path / "site")
    test = shutil.copy(PACKAGE / "test_one_plus_lambda.py", tmp_path)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
