"""Judging programs of a problem folder in a sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from flowevolve.core.artifact import Artifact
from flowevolve.programs import Verdict
from flowevolve.programs.evaluator import EvaluatorProblem, with_readable_evaluator
from flowevolve.sandbox import Sandbox, SandboxSettings

Judge = Callable[[EvaluatorProblem, str | None], Awaitable[Verdict]]


@pytest.fixture
def judge() -> Judge:
    """The verdict on a program, or on the seed."""
    return judge_in(30)


@pytest.fixture
def hurried() -> Judge:
    """The same for those that take their time."""
    return judge_in(0.5)


def judge_in(seconds: float) -> Judge:
    async def judged(problem: EvaluatorProblem, program: str | None) -> Verdict:
        settings = SandboxSettings(concurrency=1, timeout=seconds, memory_mb=1024, preload=())
        artifact = problem.seed() if program is None else Artifact({problem.file: program}, kind="program")
        async with Sandbox(with_readable_evaluator(settings, problem)) as sandbox:
            return await problem.judge(artifact, problem.cases[0], sandbox)

    return judged
