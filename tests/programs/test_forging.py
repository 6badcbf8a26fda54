"""Programs that try to forge their score: held apart from the evaluator none does, beside it many would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import anyio.from_thread
import pytest

from flowevolve.programs import EvaluatorProblem, Verdict
from flowevolve.sandbox import Sandbox, SandboxPair, SandboxSettings
from tests.support.forgers import FORGED, FORGERS, HONEST, KINDS, SEED, problem, source


class Court:
    """The problems of all kinds, and the sandboxes to judge programs in, used from tests that are not async."""

    def __init__(
        self,
        problems: Mapping[str, EvaluatorProblem],
        pair: SandboxPair,
        portal: anyio.from_thread.BlockingPortal,
    ) -> None:
        self.problems = problems
        self._pair = pair
        self._portal = portal

    def apart(self, kind: str, program: str) -> Verdict:
        return self._portal.call(self.problems[kind].judged, program, self._pair).verdict

    def beside(self, kind: str, program: str) -> Verdict:
        return self._portal.call(self.problems[kind].judged, program, self._pair.evaluators).verdict


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    root = tmp_path_factory.mktemp("folders")
    root.chmod(0o755)
    problems = {kind: problem(kind, root / kind) for kind in KINDS}
    settings = SandboxSettings(concurrency=1, timeout=20, memory_mb=256, preload=())
    seeing = settings.model_copy(update={"readable": tuple(each.folder for each in problems.values())})
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Sandbox(seeing)) as evaluators,
        portal.wrap_async_context_manager(Sandbox(settings)) as programs,
    ):
        yield Court(problems, SandboxPair(evaluators, programs), portal)


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_program_has_its_score_in_both_forms(court: Court, kind: str) -> None:
    assert (court.apart(kind, SEED).value, court.beside(kind, SEED).value) == (HONEST, HONEST)


@pytest.mark.parametrize("name", FORGERS)
@pytest.mark.parametrize("kind", KINDS)
def test_held_apart_no_program_forges_its_score(court: Court, kind: str, name: str) -> None:
    verdict = court.apart(kind, source(name))
    assert verdict.value in ((HONEST,) if verdict.failure is None else (0.0,)), verdict.feedback


WINNERS: Mapping[str, str] = {
    "openevolve": "writes to every descriptor when called",
    "shinka": "patches what its callers know",
    "levi": "patches functions that it finds in memory",
    "command": "prints a score and ends",
}


@pytest.mark.parametrize(("kind", "name"), [*WINNERS.items(), *((kind, "searches for the answer") for kind in KINDS)])
def test_beside_the_evaluator_a_program_can_forge_its_score(court: Court, kind: str, name: str) -> None:
    assert court.beside(kind, source(name)).value == FORGED
