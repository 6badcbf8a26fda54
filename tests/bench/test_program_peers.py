"""The bench beside other systems: its coder, its reader of what was recorded, and its page, without these systems."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bench._lib.methods.recording import Span
from bench.program_peers.coder import FILE, PeersCoder, endless, read_prompt
from bench.program_peers.evaluations import Evaluation, read_log
from bench.program_peers.figures import figures, life_figures
from bench.program_peers.folders import HERE, PROBLEMS, PROGRAM as PROGRAM_FILE, entry, statement, write_folder
from bench.program_peers.rescoring import rescored
from bench.program_peers.results import report
from bench.program_peers.section import answer, section
from bench.program_peers.systems import SYSTEMS
from bench.program_peers.trial import Life, Plan, Trial
from flowevolve.core.model import ChatRequest, Message
from flowevolve.problems.folders.catalog import system_of

PROGRAM = "def pack():\n    size = 0.25\n    return [(0.5, 0.5, size)]"
OTHER = "def pack():\n    size = 0.125\n    return [(0.5, 0.5, size)]"
MAP_ELITES = f"""\
# Program Information
- Fitness: 0.2500

## Best Programs

### Program 1 (Score: 0.1250)
```python
{OTHER}
```

# Current Program
```python
{PROGRAM}
```

# Task
<<<<<<< SEARCH
# as it is
=======
# as it is to be
>>>>>>> REPLACE
"""
TAGGED = f"""\
<NAME>
</NAME>
<CODE>
```python
# the program
```
</CODE>

# Current program
```python
{PROGRAM}
```
Combined score to maximize: 0.25

# Prior programs
```python
{OTHER}
```
Combined score to maximize: 0.12
"""
VERSIONS = f"""\
## Signature
```python
def pack() -> list:
```

## v1
Score: 0.25
```python
{PROGRAM}
```

## v2
Score: 0.125
```python
{OTHER}
```
"""


@pytest.mark.parametrize(("prompt", "form"), [(MAP_ELITES, "edits"), (TAGGED, "whole")])
def test_the_program_to_improve_is_told_from_others_and_each_has_its_score(prompt: str, form: str) -> None:
    asked = read_prompt(prompt)
    assert asked.parent is not None
    assert asked.parent.program == {FILE: PROGRAM}
    assert [other.program[FILE] for other in asked.others] == [OTHER]
    assert [other.score for other in asked.others] == [pytest.approx(0.12, abs=0.01)]
    assert asked.form == form


def test_the_first_of_several_versions_is_the_one_to_improve_and_a_signature_is_no_program() -> None:
    asked = read_prompt(VERSIONS)
    assert asked.parent is not None
    assert (asked.parent.program[FILE], asked.parent.score) == (PROGRAM, 0.25)
    assert [(other.program[FILE], other.score) for other in asked.others] == [(OTHER, 0.125)]


def test_where_no_program_is_current_another_one_is_asked_for() -> None:
    asked = read_prompt(f"### Seed 1 (Score: 0.5):\n```python\n{PROGRAM}\n```\n")
    assert asked.parent is None
    assert [other.score for other in asked.others] == [0.5]


def replies(coder: PeersCoder, prompt: str, count: int) -> list[str]:
    request = ChatRequest("simulated", (Message("user", prompt),), seed=7)
    return [coder.reply(request, random.Random(0)) for _ in range(count)]


def test_equal_requests_have_different_answers_and_equal_coders_the_same() -> None:
    asked = replies(PeersCoder(1), MAP_ELITES, 5)
    assert len(set(asked)) > 1
    assert asked == replies(PeersCoder(1), MAP_ELITES, 5)
    assert all("SEARCH" in reply for reply in asked)


def test_tags_are_answered_with_tags() -> None:
    assert all(reply.startswith("<NAME>") and "</CODE>" in reply for reply in replies(PeersCoder(), TAGGED, 3))


def test_one_answer_has_a_program_that_never_ends() -> None:
    asked = replies(PeersCoder(entry="pack", endless_at=2), MAP_ELITES, 3)
    assert ["while True" in reply for reply in asked] == [False, True, False]
    assert endless(PROGRAM, "pack").startswith("def pack():\n    while True:\n        pass\n    size")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problems_are_written_in_each_form(tmp_path: Path, problem: str) -> None:
    for form in ("openevolve", "shinka", "levi"):
        write_folder(problem, form, tmp_path / form)
        assert system_of(tmp_path / form) == form
    assert entry(problem) in statement(problem)


def test_a_program_is_scored_with_the_folders_evaluator() -> None:
    seed = (HERE / "problems" / "circle_packing" / PROGRAM_FILE).read_text(encoding="utf-8")
    assert anyio.run(rescored, "circle_packing", seed) == pytest.approx(2.2213, abs=1e-3)


def test_a_log_is_read_by_worker_and_what_did_not_end_is_kept(tmp_path: Path) -> None:
    lines = [
        {"worker": "1", "event": "began", "at": 10.0},
        {"worker": "2", "event": "began", "at": 11.0},
        {"worker": "1", "event": "ended", "at": 12.0, "score": 0.5, "error": None},
        {"worker": "1", "event": "began", "at": 13.0},
        {"worker": "1", "event": "ended", "at": 14.0, "score": 0.0, "error": "ValueError: no"},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_log(log, 10.0) == [
        Evaluation(0.0, 2.0, 0.5, None),
        Evaluation(3.0, 4.0, 0.0, "ValueError: no"),
        Evaluation(1.0, None, None),
    ]
    assert read_log(tmp_path / "none.jsonl", 0.0) == []


def trial(
    system: str, *, evaluations: int, best: float, kill_at: int | None = None, endless_at: int | None = None
) -> Trial:
    plan = Plan(system, "function_minimization", 0, 4, 2, "instant", 1.0, 60.0, 60.0, kill_at, endless_at)
    spans = tuple(Span(float(place), place + 2.0, "rollout", 10, None, 5) for place in range(4))
    ended = [Evaluation(-1.0, -0.5, 0.25), *(Evaluation(None, place + 1.0, best) for place in range(evaluations))]
    life = Life(spans, tuple(ended), 3.0, 1.0, 1.4, 8.0, "itself")
    return Trial(plan, (replace(life, ended="killed"), life) if kill_at else (life,), best)


def test_figures_are_of_the_time_from_the_first_call_to_the_last_evaluation() -> None:
    made = trial("openevolve", evaluations=6, best=0.5)
    life = life_figures(made.lives[0])
    assert life["seconds"] == 6.0
    assert life["evaluations_per_minute"] == 60.0
    assert life["mean_in_flight"] == pytest.approx(8 / 6)
    assert life["busy_percent"] == pytest.approx(500 / 6)
    assert life["cpu_ms_per_call"] == pytest.approx(100.0)
    assert figures(made)["curve"] == [0.25, *[0.5] * 6]


def test_of_a_run_that_lasts_as_long_without_trouble_it_cannot_be_told_whether_it_ends() -> None:
    alone, endless = (trial("levi", evaluations=2, best=0.5, endless_at=at) for at in (None, 2))
    given_up = replace(endless, lives=(replace(endless.lives[0], ended="patience"),))
    rows = [figures(each) for each in (trial("flowevolve", evaluations=2, best=0.5), alone, given_up)]
    content = report(rows, alone=True)
    settings = content["settings"]
    assert isinstance(settings, dict)
    lasted = alone.lives[0].lasted
    for patience, said in ((lasted, "can't be told"), (2 * lasted, "not by itself")):
        assert f"| LEVI | {said}" in section({**content, "settings": {**settings, "patience": patience}})


def test_the_page_says_first_where_others_are_ahead_and_counts_what_a_kill_cost() -> None:
    trials = [trial("flowevolve", evaluations=6, best=0.5), trial("openevolve", evaluations=5, best=0.625)]
    trials += [trial(name, evaluations=2, best=0.5, kill_at=2) for name in ("flowevolve", "openevolve")]
    trials += [trial(name, evaluations=2, best=0.5, endless_at=2) for name in ("flowevolve", "openevolve")]
    content = report([figures(each) for each in trials], alone=False)
    made = section(content)
    assert "a higher score on `function_minimization`: OpenEvolve" in made
    assert "more evaluations a minute" not in made
    assert "trial run" in made
    assert "| OpenEvolve | 4 | 0 | 4 | 8 | 4 | 6 | 6 | 0.500 | by itself |" in made
    trial_run = answer(content)
    assert trial_run.startswith("a trial run of 1 problem and 1 seed")
    assert "evaluations a minute" not in trial_run
    whole = report([figures(each) for each in trials], alone=True, note="It rained.")
    assert "It rained." in section(whole)
    assert answer(whole) == (
        "evaluations/min at 4 times the server's speed, where CPU time weighs as much more: our (1+λ) 60, OpenEvolve 60; scores above it: "
        "OpenEvolve on 1 of 1 problem, 1 seed"
    )
    assert all(system.version is None or f"{system.version}" in made for system in SYSTEMS.values())
