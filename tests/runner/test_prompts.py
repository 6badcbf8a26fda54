"""Runs whose prompts are written from templates of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import Config, parse_config
from flowevolve.core.event_kinds import CandidateProposed
from flowevolve.journal.reading import RecordedRun
from flowevolve.prompts.shipped import read_templates
from flowevolve.runner.result import Result
from flowevolve.runner.run import run

REFLECT = (
    "# Improve an instruction\n\nIN MY WORDS: {component}\n\n## Current instruction\n{text}\n{others}\n\n{examples}\n"
)


def config(folder: Path, **prompts: object) -> Config:
    table = {
        "clock": "virtual",
        "algorithm": {"mode": "sync"},
        "prompts": {"dir": str(folder), **prompts},
        "sim": {"profile": "instant"},
        "budget": {"proposals": 3},
    }
    return parse_config(table, "test")


def evolve(config: Config, out: Path) -> Result:
    async def go() -> Result:
        return await run(config, out=out)

    return clock.run(go, clock="virtual")


def test_a_run_writes_its_prompts_from_them_and_its_journal_says_so(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reflect.md").write_text(REFLECT, encoding="utf-8")
    evolve(config(tmp_path / "own"), tmp_path / "run")
    with RecordedRun(tmp_path / "run") as recorded:
        calls = list(recorded.calls())
    reflections = [call for call in calls if call.role == "reflection"]
    assert {call.template for call in reflections} == {read_templates(tmp_path / "own", 1000)["reflect"].version}
    assert all("IN MY WORDS: system_prompt" in call.messages[0].content for call in reflections if call.messages)
    assert {call.template for call in calls if call.role == "task"} == {None}


def test_a_prompt_is_no_longer_than_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reflect.md").write_text(REFLECT + "filler " * 800, encoding="utf-8")
    evolve(config(tmp_path / "own", max_tokens=2100), tmp_path / "run")
    with RecordedRun(tmp_path / "run") as recorded:
        asked = [call.messages[0].content for call in recorded.calls() if call.role == "reflection" and call.messages]
    assert any("characters left out …]" in text for text in asked)
    assert max(map(len, asked)) <= 2100 * 4


def test_a_template_that_can_t_be_used_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reflect.md").write_text("no fields", encoding="utf-8")
    with pytest.raises(InputError, match="lacks the field"):
        evolve(config(tmp_path / "own"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "algorithm",
    [{"mode": "sync"}, {"max_in_flight": 8}, {"name": "combee", "batch": 3}],
    ids=["lockstep", "groups", "combee"],
)
def test_no_text_that_is_evolved_gets_longer_than_it_may(tmp_path: Path, algorithm: dict[str, object]) -> None:
    table = {
        "clock": "virtual",
        "algorithm": algorithm,
        "prompts": {"max_text_tokens": 100},
        "sim": {"profile": "instant"},
        "budget": {"proposals": 30},
    }
    evolve(parse_config(table, "test"), tmp_path / "run")
    with RecordedRun(tmp_path / "run") as recorded:
        proposed = [each.body.components for each in recorded.proposals() if isinstance(each.body, CandidateProposed)]
        refused = [each.data for each in recorded.events() if each.kind == "reply.unparsable"]
    lengths = [len(text) for components in proposed for text in components.values()]
    assert 300 < max(lengths) <= 400
    assert {str(each["reason"]) for each in refused} >= {"too_long"}
    assert any("say the same in fewer words" in str(each["error"]) for each in refused)
