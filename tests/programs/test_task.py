"""Problems as tasks: programs run in the sandbox, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio.lowlevel
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import EngineError, InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.events import Event
from flowevolve.core.model import Message
from flowevolve.core.task import Measured, Rollout
from flowevolve.programs import Case, CommandProblem, FunctionProblem, Problem, ProgramTask, Verdict
from flowevolve.runner.check import check
from flowevolve.runner.run import Watchers, run
from flowevolve.sandbox import SandboxSettings
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from tests.support.memory_cluster import MemoryCluster
from tests.support.problems import Nearest

pytestmark = pytest.mark.anyio
SETTINGS = SandboxSettings(preload=(), concurrency=1, timeout=5)


async def nobody(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
    raise AssertionError("a program needs no model")


async def rollouts(problem: Problem, artifact: Artifact | None = None) -> list[Rollout]:
    async with ProgramTask(problem, SETTINGS) as task:
        return [await task.rollout(artifact or task.seed(), row, nobody) for row in task.data.val]


async def test_a_rollout_is_the_verdict_on_a_case() -> None:
    first, second = await rollouts(Nearest(cases=2))
    assert (first.example_id, second.example_id) == ("case0", "case1")
    assert first.score.value == -((27.0 - 1) ** 2 + (-22.5 - 2) ** 2 + (12.0 - 3) ** 2 + (60.0 - 5) ** 2)
    assert first.score.value != second.score.value
    assert first.score.failure is None
    assert set(first.score.metrics) == {"distance", "seconds"}


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("return [1, 2]", "give a list of 4 numbers"),
        ("return [1, 2, 'x', None]", "not all are numbers"),
        ("return nothing", "error: NameError: name 'nothing' is not defined"),
        ("while True: pass", "timeout: time-out"),
    ],
)
async def test_what_is_no_solution_has_the_worst_score_and_says_why(body: str, failure: str) -> None:
    problem = Nearest()
    problem.timeout = 0.5
    artifact = Artifact({"program.py": f"def guess(shift):\n    {body}\n"}, kind="program")
    (rollout,) = await rollouts(problem, artifact)
    assert rollout.score.value == problem.worst
    assert rollout.score.failure == failure


class Several(FunctionProblem):
    name = "several"
    statement = "Write total(), which returns 42."
    entry = "total"

    def seed(self) -> Artifact:
        files = {
            "program.py": "import helper\nfrom parts.more import THREE\n\ndef total():\n    return helper.half() * 2 + THREE\n",
            "helper.py": "from __future__ import annotations\nimport parts.more as more\n\ndef half():\n    return more.half(39)\n",
            "parts/more.py": "THREE = 3\n\ndef half(x):\n    return x / 2\n",
        }
        return Artifact(files, kind="program")

    def score(self, case: Case, result: JSON) -> Verdict:
        return Verdict(float(result == 42), str(result))


async def test_a_program_of_several_files_imports_its_own() -> None:
    (rollout,) = await rollouts(Several())
    assert rollout.score.value == 1.0, rollout.score.feedback


async def test_an_error_in_one_of_several_files_names_it() -> None:
    broken = Several().seed().replace(**{"parts/more.py": "THREE = 3\n\ndef half(x):\n    return x / 0\n"})
    (rollout,) = await rollouts(Several(), broken)
    assert rollout.score.failure == "error: ZeroDivisionError: division by zero"
    assert 'File "parts/more.py", line 4' in rollout.score.feedback


class Shell(CommandProblem):
    name = "shell"
    statement = "Print the number on standard input, and 1 more."
    command = ("sh",)
    file = "program.sh"
    source = "read line\necho ${#line}\n"
    cases = (Case("list", [1, 2]),)

    def score(self, case: Case, result: JSON) -> Verdict:
        return Verdict(float(result) if isinstance(result, int) else 0.0, repr(result))


async def test_a_program_in_another_language_reads_and_prints_json() -> None:
    (rollout,) = await rollouts(Shell())
    assert rollout.score.value == len("[1, 2]"), rollout.score


async def test_a_task_is_used_inside_of_its_block_and_by_one_run_at_a_time() -> None:
    task = ProgramTask(Nearest(), SETTINGS)
    assert isinstance(task, Measured)
    with pytest.raises(EngineError, match="has no sandbox yet"):
        await task.rollout(task.seed(), task.data.val[0], nobody)
    async with task:
        with pytest.raises(EngineError, match="in use by a run already"):
            await task.__aenter__()
    async with task:
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("worst", [float("-inf"), float("inf"), float("nan")])
async def test_the_score_of_a_failure_has_to_be_a_number_to_reckon_with(worst: float) -> None:
    problem = Nearest()
    problem.worst = worst
    with pytest.raises(InputError, match=r"worst, the score of programs that fail, is .*; give a finite number"):
        ProgramTask(problem)


async def test_a_problem_needs_cases_of_different_names() -> None:
    with pytest.raises(InputError, match="needs cases"):
        ProgramTask(Nearest(cases=0))
    twice = Nearest()
    twice.cases = [Case("a"), Case("a")]
    with pytest.raises(InputError, match="each with an id of its own"):
        ProgramTask(twice)


async def test_a_task_whose_programs_run_on_a_cluster_says_which_case_each_is_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = MemoryCluster(lambda: LocalEvaluators(SETTINGS), size=1, faults=["repeat", "lose_after"])
    monkeypatch.setattr("flowevolve.programs.task.open_evaluators", lambda settings, tell: LeasedEvaluators(cluster))
    there = await rollouts(Nearest(cases=2))
    monkeypatch.undo()
    here = await rollouts(Nearest(cases=2))
    assert [each.score.value for each in there] == [each.score.value for each in here]
    sent = [message for node in cluster.nodes.values() for message in node.sent]
    keys = [json.loads(message)["jobs"][0]["key"] for message in sent]
    assert [(case, epoch) for _, _, _, case, _, epoch in keys] == [("case0", 1), ("case1", 1), ("case1", 2)]


async def test_a_folder_that_is_missing_is_told_before_any_node_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = MemoryCluster(lambda: LocalEvaluators(SETTINGS))
    monkeypatch.setattr("flowevolve.programs.task.open_evaluators", lambda settings, tell: LeasedEvaluators(cluster))
    task = ProgramTask(Nearest(), SETTINGS.model_copy(update={"readable": (tmp_path / "gone",)}))
    with pytest.raises(InputError, match=r"sandbox\.readable: .*gone: there is no such folder"):
        await task.__aenter__()
    assert cluster.nodes == {}


def test_a_run_that_waits_for_a_node_says_so_at_once_and_in_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = MemoryCluster(lambda: LocalEvaluators(SETTINGS), size=1)
    cluster.occupied = {"1"}
    for place in ("flowevolve.programs.task", "flowevolve.sandbox.opening"):
        monkeypatch.setattr(f"{place}.open_evaluators", lambda settings, tell: LeasedEvaluators(cluster, tell=tell))
    lines, checked, events = list[str](), list[str](), list[Event]()

    def tell(line: str) -> None:
        lines.append(line)
        cluster.occupied.clear()

    def note(line: str) -> None:
        checked.append(line)
        cluster.occupied.clear()

    table = {"algorithm": {"name": "best_of_n"}, "sim": {"world": "code"}, "budget": {"evaluations": 2}}
    config = parse_config({**table, "clock": "virtual"}, "test")
    watchers = Watchers(events=(events.append,), notes=(tell,))
    clock.run(partial(run, config, task=ProgramTask(Nearest(), SETTINGS), watchers=watchers), clock="virtual")
    assert lines == [
        "the cluster: node 1 is in use by another run; waiting for 120 s at most",
        "the cluster: the wait is over; slots for programs: 1",
    ]
    assert [event.kind for event in events][:2] == ["node.awaited", "node.joined"]
    cluster.occupied = {"1"}
    clock.run(partial(check, config, ProgramTask(Nearest(), SETTINGS), note), clock="virtual")
    assert checked == lines
