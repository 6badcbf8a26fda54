"""Programs in one process beside the bench: what comes of them, and that all of them end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.programs.quick_task import QuickTask, Runner
from flowevolve.config.run import parse_config
from flowevolve.runner.assemble import make_problem

CPU_SECONDS = 0.2


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner(CPU_SECONDS)
    yield made
    made.close()


PROGRAMS = {
    "works": ("def go(n):\n    return [n, (1, 2.5)]", "ok", ""),
    "loops": (
        "def go(n):\n    while True:\n        try:\n            n += 1\n        except Exception:\n            pass",
        "timeout",
        "",
    ),
    "raises": ("def go(n):\n    return n / 0", "error", "ZeroDivisionError"),
    "exits": ("def go(n):\n    raise SystemExit(3)", "error", "SystemExit"),
    "gives no JSON": ("def go(n):\n    return {1, 2}", "error", "not JSON serializable"),
    "gives no number": ("def go(n):\n    return float('nan')", "error", "not JSON compliant"),
    "lacks the function": ("def stop(n):\n    return n", "error", "KeyError"),
    "is no Python": ("def go(", "error", "SyntaxError"),
    "takes too much memory": ("def go(n):\n    return len(bytearray(10**11))", "memory", ""),
    "never comes back up": ("def go(n):\n    return go(n)", "error", "RecursionError"),
    "ends the process": ("import os\ndef go(n):\n    os._exit(0)", "killed", ""),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", PROGRAMS)
async def test_what_came_of_a_program_is_told(name: str, runner: Runner) -> None:
    source, status, words = PROGRAMS[name]
    outcome = await runner.run(source, call="go", arguments={"n": 3})
    assert outcome.status == status, outcome.stderr
    assert words in outcome.stderr
    assert outcome.result == ([3, [1, 2.5]] if status == "ok" else None)
    after = await runner.run("def go(n):\n    return n", call="go", arguments=[4])
    assert after.result == 4


@pytest.mark.anyio
@pytest.mark.parametrize("problem", ["circle_packing_32", "min_max_distance_2d", "online_bin_packing"])
async def test_seeds_score_what_they_do_in_the_sandbox(problem: str, runner: Runner) -> None:
    settings = {"items": 100, "instances": 1} if problem == "online_bin_packing" else {}
    task = {"name": "program", "problem": problem, **settings}
    made = make_problem(parse_config({"task": task, "budget": {"evaluations": 1}}, "test"))
    async with QuickTask(made, runner) as quick:
        found = await quick.rollout(made.seed(), quick.data.val[0], None)  # type: ignore[arg-type]
    assert found.score.failure is None
    assert found.score.value > 0
