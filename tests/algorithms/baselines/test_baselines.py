"""Best of N and (1+λ) over programs, with the world `code` and the real sandbox on the virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import Config, parse_config
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run, run_plan
from tests.support.interruption import Fact, Memory, as_kept, events_of
from tests.support.number_programs import Coder, Numbers, NumberTask
from tests.support.whole_runs import evolve

PROBLEM = "tests.support.problems:Nearest"


FAILING = {"name": "program", "problem": PROBLEM, "source": "def guess(shift):\n    return [1]\n"}


def config(name: str = "one_plus_lambda", **sections: object) -> Config:
    settings: dict[str, object] = {
        "clock": "virtual",
        "algorithm": {"name": name, "max_in_flight": 4},
        "task": {"name": "program", "problem": PROBLEM},
        "sandbox": {"preload": [], "concurrency": 2, "timeout": 5},
        "sim": {"world": "code"},
        "budget": {"proposals": 24},
    }
    return parse_config(settings | sections, "test")


def told(events: Sequence[fe.Event]) -> list[tuple[str, object]]:
    """What happened, without what was measured."""
    return [
        (event.kind, {name: value for name, value in event.data.items() if name not in ("changes", "attributes")})
        for event in events
    ]


@pytest.mark.parametrize("form", ["edits", "whole"])
def test_one_plus_lambda_comes_far_from_a_bad_seed(form: str) -> None:
    algorithm = {"name": "one_plus_lambda", "max_in_flight": 4, "form": form}
    result, events = evolve(config(algorithm=algorithm, budget={"proposals": 200}, seed=1))
    assert result.report.error is None
    assert result.seed_score is not None
    assert result.best is not None
    assert result.best.score > 0.05 * result.seed_score  # both are negative
    assert result.best.metrics["seconds"] > 0
    assert result.to_json()["best"] == {
        "id": result.best.id,
        "score": result.best.score,
        "interval": list(result.best.interval or ()),
        "metrics": dict(result.best.metrics),
        "components": dict(result.best.components),
        "characters": sum(map(len, result.best.components.values())),
    }
    assessed = [event.data["failure"] for event in events if event.kind == "candidate.assessed"]
    assert len(assessed) > 100
    assert any(event.kind == "reply.unparsable" for event in events)


def test_a_run_whose_replies_can_never_be_read_ends() -> None:
    settings = config(
        sim={"world": "rules"}, budget={"evaluations": 50}, stopping={"unevaluated": 40, "fruitless": 500}
    )
    result, events = evolve(settings)
    assert result.report.stop_reason == "unevaluated"
    assert 40 <= result.report.spent.proposals < 60
    assert sum(event.kind == "reply.unparsable" for event in events) >= 40


def test_children_of_best_of_n_are_all_of_the_seed() -> None:
    result, events = evolve(config("best_of_n"))
    proposed = [event.data for event in events if event.kind == "candidate.proposed"]
    seed = proposed[0]["candidate"]
    assert len(proposed) > 15
    assert {str(each["parents"]) for each in proposed[1:]} == {f"['{seed}']"}
    scores = [float(str(event.data["score"])) for event in events if event.kind == "candidate.assessed"]
    assert result.best is not None
    assert result.best.score == max(scores)


def test_children_of_one_plus_lambda_are_of_the_best_when_they_were_begun() -> None:
    result, events = evolve(config())
    chosen = [event.data["parent"] for event in events if event.kind == "parent.selected"]
    assert len(set(map(str, chosen))) > 3
    assert result.best is not None
    assert result.report.accepted > 3


def test_in_lockstep_a_generation_has_one_parent() -> None:
    settings = config(algorithm={"name": "one_plus_lambda", "mode": "sync", "width": 5}, budget={"proposals": 20})
    _, events = evolve(settings)
    chosen = [str(event.data["parent"]) for event in events if event.kind == "parent.selected"]
    generations = [chosen[start : start + 5] for start in range(0, len(chosen), 5)]
    assert len(generations) >= 4
    assert all(len(set(generation)) == 1 for generation in generations)


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = evolve(config()), evolve(config())
    assert told(first[1]) == told(second[1])
    other = evolve(config(seed=1))
    assert told(first[1]) != told(other[1])


def test_a_seed_that_fails_ends_the_run_and_says_why() -> None:
    with pytest.raises(InputError, match="problem 'nearest': the seed fails: give a list of 4 numbers"):
        evolve(config(task=FAILING))


def test_a_seed_that_fails_is_told_again_when_the_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the seed fails"):
        evolve(config(task=FAILING), tmp_path / "run")
    with pytest.raises(InputError, match="problem 'nearest': the seed fails: give a list of 4 numbers"):
        clock.run(partial(fe.resume, tmp_path / "run"), clock="virtual")


COMMANDS = [
    ("echo no >&2; exit 3", "problem 'seed': the seed fails: error: RuntimeError: sh ended with 3; mend it"),
    ("echo -5", r"seed\.txt, which evolution starts from, scores -5, less than a failure's 0; set task\.worst"),
]


@pytest.mark.parametrize(("script", "says"), COMMANDS)
def test_a_seed_that_an_evaluator_of_yours_turns_down_ends_the_run(tmp_path: Path, script: str, says: str) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "seed.txt").write_text("one\n")
    task = {"name": "program", "program": str(tmp_path / "seed.txt"), "command": ["sh", "-c", script, "{program}"]}
    with pytest.raises(InputError, match=says):
        evolve(config(task=task))


def test_a_file_that_an_evaluator_lacks_is_named_where_it_is_outside_of_the_sandbox(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "initial_program.py").write_text("# EVOLVE-BLOCK-START\nvalue = 1\n# EVOLVE-BLOCK-END\n")
    (tmp_path / "evaluator.py").write_text(
        "from pathlib import Path\n\n\ndef evaluate(program_path):\n"
        '    return {"score": float(Path(__file__).with_name("best.txt").read_text())}\n'
    )
    with pytest.raises(
        InputError, match=rf"the seed fails: .* No such file or directory: '{tmp_path}/best\.txt'; mend"
    ):
        evolve(config(task={"name": "program", "folder": str(tmp_path)}))


def test_other_tasks_are_refused() -> None:
    with pytest.raises(InputError, match=r'algorithm best_of_n evolves programs; set task\.name = "program"'):
        evolve(config("best_of_n", task={"name": "house_style"}))


@pytest.mark.parametrize("name", ["gepa", "combee", "ace"])
def test_what_rewrites_texts_by_their_calls_refuses_programs(name: str) -> None:
    with pytest.raises(InputError, match=f"algorithm {name} learns from the LLM calls that texts are used in"):
        evolve(config(name))


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ({}, r"task\.problem is missing; name the problem to solve"),
        ({"problem": "circle_packin"}, "task: unknown problem 'circle_packin'"),
        ({"problem": PROBLEM, "case": 3}, r"task\.case: problem .* has no such setting; did you mean 'cases'"),
        ({"problem": "tests.support.problems:SEED"}, "not a class or a function"),
    ],
)
def test_a_problem_that_can_not_be_had_is_named(task: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        evolve(config(task={"name": "program", **task}))


def test_a_program_from_outside_is_assessed_and_others_are_refused() -> None:
    best = fe.Artifact({"program.py": "def guess(shift):\n    return [1, 2, 3, 5]\n"}, kind="program")

    async def go() -> fe.Candidate | None:
        async with fe.open_run(config()) as engine:
            async for event in engine.events():
                if event.kind == "pool.commit" and event.data["version"] == 2:
                    with pytest.raises(InputError, match=r"has components 'a', but needs 'program.py'$"):
                        await engine.inject(fe.Artifact({"a": "x"}, kind="program"))
                    await engine.inject(best)
        return engine.best

    found = clock.run(go, clock="virtual")
    assert found is not None
    assert found.mean_score == 0.0


def test_a_run_that_has_ended_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first, _ = evolve(config(), out)

    async def go() -> Result:
        return await fe.resume(out, changes=["budget.proposals=40"])

    again = clock.run(go, clock="virtual")
    assert again.report.spent.proposals > first.report.spent.proposals
    assert again.best is not None
    assert first.best is not None
    assert again.best.score >= first.best.score


def interrupted(settings: Config, before: Sequence[Fact] = ()) -> tuple[Result, list[Fact]]:
    facts = list(before)

    async def go() -> Result:
        watchers = Watchers(events=(lambda event: facts.append(as_kept(event)),), calls=(facts.append,))
        history = Memory(tuple(before)) if before else None
        return await run_plan(make_plan(settings, ProvidedObjects()), None, watchers, None, history)

    return clock.run(go, clock="virtual"), facts


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_after_an_interruption_no_program_that_had_ended_runs_again(share: float) -> None:
    _, facts = interrupted(config())
    result, combined = interrupted(config(), facts[: int(share * len(facts))])
    assert result.report.error is None
    ran = [(event.data["item"], event.data["key"]) for event in events_of(combined, "rollout.kept")]
    assert len(ran) == len(set(ran))
    assert result.report.spent.proposals >= 24


class InProcessCoder(Coder):
    in_process = True


def test_what_became_of_programs_that_were_not_accepted_is_in_the_candidates_and_in_the_report(tmp_path: Path) -> None:
    sections: dict[str, object] = {
        "clock": "virtual",
        "algorithm": {"name": "one_plus_lambda", "form": "whole"},
        "llm": {"backend": f"{__name__}:InProcessCoder", "model": "coder"},
        "budget": {"proposals": 60},
    }
    task = NumberTask(Numbers(limit=1.3))
    result = clock.run(lambda: run(parse_config(sections, "test"), task=task, out=tmp_path / "run"), clock="virtual")
    failed = [each for each in result.candidates if each.failure is not None]
    worse = [each for each in result.candidates if each.status == "rejected" and each.failure is None]
    failure = "error: no number below the limit (2 of 2 cases failed; this is case one)"
    assert {(each.failure, each.score, each.examples) for each in failed} == {(failure, 0.0, 0)}
    assert result.best is not None
    assert worse
    assert all(each.score is not None and each.score <= result.best.score for each in worse)
    assert result.report.stages["update"].counts.reasons == {
        f"failed: {failure}": len(failed),
        "not as good as the best": len(worse),
    }
    assert list(fe.Result.load(result.save(tmp_path / "saved.json")).candidates) == list(result.candidates)
