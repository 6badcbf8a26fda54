"""The problem `families`: scores follow from structure, and what is of no family fails."""

from __future__ import annotations

import asyncio

from flowevolve.core.artifact import Artifact
from flowevolve.problems.catalog import PROBLEMS, SHIPPED_PROBLEMS
from flowevolve.programs import Problem, Verdict
from flowevolve.programs.problem import PROGRAM
from flowevolve.sandbox import Sandbox, SandboxSettings
from flowevolve.tasks.families.catalog import SEED, WAYS, Member, middle

NO_SANDBOX = Sandbox(SandboxSettings())


def problem() -> Problem:
    return PROBLEMS.make("families", {}, "task")


def judged(text: str, case: int) -> Verdict:
    found = problem()
    return asyncio.run(found.judge(Artifact({PROGRAM: text}, kind="program"), found.cases[case], NO_SANDBOX))


def test_a_program_of_a_family_gets_its_score_and_is_told_what_it_lost() -> None:
    member = Member(middle(WAYS["shares"]), middle(WAYS["snake"]))
    for place, case in enumerate(("steady", "shifting")):
        verdict = judged(str(member), place)
        assert verdict.value == member.score(case)
        assert verdict.failure is None
        assert f"`copies` cost {member.lost('copies', case):.3f}" in verdict.feedback


def test_a_program_of_no_family_fails() -> None:
    verdict = judged("def solve(): pass", 0)
    assert verdict.failure == "no known family"
    assert verdict.value == problem().worst == 0


def test_the_seed_works_and_is_of_the_plain_family() -> None:
    assert problem().seed()[PROGRAM] == str(SEED)


def test_it_is_not_among_the_problems_for_real_models() -> None:
    assert "families" not in SHIPPED_PROBLEMS
