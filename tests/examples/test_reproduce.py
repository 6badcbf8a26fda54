"""The commands of docs/reproduce.md are such as can be given."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from flowevolve.config.run import load_config
from flowevolve.problems.limits import PAPER
from flowevolve.runner.assemble import find_algorithm, make_problem

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
LLM = re.findall(r'^LLM="(.*)"$', PAGE, re.MULTILINE)[0]
COMMANDS = re.findall(r"^flowevolve run (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.rpartition("/")[2])
def test_a_run_of_the_page_can_be_configured(command: str) -> None:
    words = shlex.split(command.replace("$LLM", LLM).replace("$DATA", "data"))
    assert words[-2] == "--out"
    overrides = [word for flag, word in pairwise(words) if flag == "--set"]
    config = load_config(ROOT / words[0], [each for each in overrides if not each.startswith("task.data=")])
    find_algorithm(config).config_type.model_validate(config.algorithm.settings)
    if config.task.name == "program":
        problem = make_problem(config)
        assert problem.name in PAPER
        assert f"A call may take {PAPER[problem.name].timeout:g} seconds" in problem.statement


def test_every_problem_of_the_page_has_a_command_or_is_named() -> None:
    assert {name for name in PAPER if name not in PAGE} == set()


def test_benches_of_the_page_are_there() -> None:
    named = set(re.findall(r"python -m\s+(bench\.\w+)", PAGE))
    assert len(named) > 5
    assert {name for name in named if find_spec(f"{name}.__main__") is None} == set()
