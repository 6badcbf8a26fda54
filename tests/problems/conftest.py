"""One sandbox for the programs of all these tests, which are not async."""

from __future__ import annotations

from collections.abc import Iterator

import anyio.from_thread
import pytest

from flowevolve.core.artifact import Artifact
from flowevolve.programs import Case, Problem, Verdict
from flowevolve.sandbox import Sandbox, SandboxSettings


class Court:
    """Judges programs."""

    def __init__(self, sandbox: Sandbox, portal: anyio.from_thread.BlockingPortal) -> None:
        self._sandbox = sandbox
        self._portal = portal

    def judge(self, problem: Problem, source: str | None = None, case: Case | None = None) -> Verdict:
        """The verdict on a program, by default the seed, in a case, by default the first."""
        program = problem.seed() if source is None else Artifact({"program.py": source}, kind="program")
        return self._portal.call(problem.judge, program, case or problem.cases[0], self._sandbox)

    def judge_artifact(self, problem: Problem, program: Artifact) -> Verdict:
        """The verdict on a program of any language in the first case."""
        return self._portal.call(problem.judge, program, problem.cases[0], self._sandbox)

    def mean(self, problem: Problem, source: str | None = None) -> float:
        """The mean value of a program, by default the seed, over all cases, none of which may fail."""
        verdicts = [self.judge(problem, source, case) for case in problem.cases]
        assert [verdict.failure for verdict in verdicts] == [None] * len(verdicts)
        return sum(verdict.value for verdict in verdicts) / len(verdicts)


@pytest.fixture(scope="session")
def court() -> Iterator[Court]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Sandbox(SandboxSettings(concurrency=1))) as sandbox,
    ):
        yield Court(sandbox, portal)
