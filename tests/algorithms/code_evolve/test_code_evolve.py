"""CodeEvolve: what is selected and shown, prompts, failures, migration, and what does not suit it."""

from __future__ import annotations

import re
from collections import Counter
from typing import cast

import anyio
import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.code_evolve import CodeEvolve
from flowevolve.algorithms.code_evolve.islands import PROMPTS
from flowevolve.core.algorithm import Tuning, WorkersWanted
from flowevolve.core.policies import Speculation
from flowevolve.engine.report import RunReport
from flowevolve.prompts.programs import ANCESTORS_HEADING, CHANGE_TITLES, META_TITLE, OTHERS_HEADING, Change
from flowevolve.tasks.house_style import house_style_task
from tests.support.code_evolving import algorithm, asked, moved, names, programs, ran, selected, settings
from tests.support.interruption import Fact, events_of, evolve
from tests.support.number_programs import Numbers, NumberTask, coder


@pytest.fixture(scope="module")
def run() -> tuple[CodeEvolve, RunReport, list[Fact]]:
    return ran()


Run = tuple[CodeEvolve, RunReport, list[Fact]]


def test_it_improves_on_the_seed(run: Run) -> None:
    evolved, report, _ = run
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.5
    assert report.spent.evaluations >= 90
    assert {each.attributes["island"] for each in evolved.frontier()} == {0, 1, 2}


def test_each_island_begins_with_programs_made_of_the_seed_alone(run: Run) -> None:
    _, report, facts = run
    chosen = selected(facts)
    starts = [data for data in chosen if data["operator"] == "start"]
    assert {data["island"] for data in starts} == {0, 1, 2}
    assert all(not names(data, "inspirations") and not names(data, "ancestors") for data in starts)
    made = [each for each in programs(report.pool) if each.operator == "start"]
    assert Counter(each.attributes["island"] for each in made) == {0: 2, 1: 2, 2: 2}
    assert all(each.parents == () for each in made)


def test_exploiting_shows_ancestors_and_the_parents_prompt(run: Run) -> None:
    _, report, facts = run
    exploits = [data for data in selected(facts) if data["operator"] == "exploit"]
    longest = 0
    for data in exploits:
        parent = report.pool[str(data["parent"])]
        assert data["prompt"] == parent.attributes["prompt"]
        line: list[str] = []
        while parent.parents:
            parent = report.pool[parent.parents[0]]
            line.append(parent.id)
        assert names(data, "ancestors") == line[:5][::-1]
        longest = max(longest, len(line))
    assert longest >= 3
    assert any(ANCESTORS_HEADING in prompt for _, prompt in asked(facts))


def test_exploring_has_a_new_prompt_written_and_shows_no_ancestors(run: Run) -> None:
    _, report, facts = run
    explores = [data for data in selected(facts) if data["operator"] == "explore"]
    assert explores
    assert all(names(data, "ancestors") == [] for data in explores)
    prompts = {each.id: each for name, each in report.pool.candidates() if name == PROMPTS}
    made = [each for each in programs(report.pool) if each.operator == "explore"]
    assert made
    for each in made:
        prompt = prompts[str(each.attributes["prompt"])]
        assert prompt.operator == "meta"
        assert prompt.attributes["island"] == each.attributes["island"]
        assert prompt.attributes["program"] == each.parents[0]
    roles = Counter((role, prompt.partition("\n")[0]) for role, prompt in asked(facts))
    changes: list[Change] = ["start", "depth", "explore"]
    assert set(roles) == {*(("code", CHANGE_TITLES[each]) for each in changes), ("meta", META_TITLE)}
    shown = [
        prompt
        for _, prompt in asked(facts)
        if prompt.startswith(CHANGE_TITLES["explore"]) and "Advice number" in prompt
    ]
    assert shown


def test_inspirations_are_others_of_the_island_and_none_comes_twice(run: Run) -> None:
    _, report, facts = run
    later = [data for data in selected(facts) if data["operator"] != "start"]
    assert {len(names(data, "inspirations")) for data in later[10:]} == {2}
    for data in later:
        shown = [report.pool[name] for name in [str(data["parent"]), *names(data, "inspirations")]]
        assert len({each.artifact.id for each in shown}) == len(shown)
        assert {each.attributes["island"] for each in shown} == {data["island"]}
    assert any(OTHERS_HEADING in prompt for _, prompt in asked(facts))


def test_a_role_of_its_own_may_write_programs_when_exploring() -> None:
    explorer = {**coder(), "explorer": coder()["code"]}
    report, facts = evolve(
        algorithm(exploring_role="explorer"), roles=lambda: explorer, budget=fe.Budget(evaluations=40), max_in_flight=6
    )
    assert report.error is None
    assert Counter(role for role, _ in asked(facts)).keys() == {"code", "meta", "explorer"}
    made = [each for each in programs(report.pool) if each.operator == "explore"]
    assert 0 < len(made) <= sum(role == "explorer" for role, _ in asked(facts))


def test_how_often_an_island_explores_is_what_its_schedule_says() -> None:
    exploration = {"initial": 0.3, "least": 0.3, "most": 0.3}
    _, _, facts = ran(algorithm(exploration=exploration), budget=fe.Budget(evaluations=600))
    counts = Counter(str(data["operator"]) for data in selected(facts))
    assert counts["explore"] / (counts["explore"] + counts["exploit"]) == pytest.approx(0.3, abs=0.05)


def test_a_prompt_is_worth_the_best_program_that_was_written_with_it(run: Run) -> None:
    _, report, _ = run
    best: dict[str, float] = {}
    for each in programs(report.pool):
        if "origin" not in each.attributes:
            name = str(each.attributes["prompt"])
            best[name] = max(best.get(name, 0.0), each.mean_score)
    prompts = {each.id: each.mean_score for name, each in report.pool.candidates() if name == PROMPTS}
    assert len(prompts) > 3
    assert {name: best[name] for name in prompts} == prompts


def test_program_and_prompt_enter_in_one_commit(run: Run) -> None:
    _, _, facts = run
    pairs = 0
    for event in events_of(facts, "pool.commit"):
        changes = cast("list[dict[str, JSON]]", event.data["changes"])
        new = [change for change in changes if "add" in change and change["pool"] == PROMPTS]
        if new and event.data["version"] != 1:
            (program,) = [change for change in changes if "add" in change and change["pool"] == "main"]
            assert cast("dict[str, JSON]", program["attributes"])["prompt"] == new[0]["add"]
            pairs += 1
    assert pairs


def test_failures_enter_with_the_worst_score_and_their_log() -> None:
    _, report, facts = ran(algorithm(Numbers(limit=1.4, worst=-7.0), exploration={"initial": 0.5}))
    failed = programs(report.pool, "rejected")
    assert failed
    for each in failed:
        assert set(each.scores.values()) == {-7.0}
        assert "no number below the limit" in str(each.attributes["failure"])
        assert "It failed." in str(each.attributes["feedback"])
    metas = [prompt for role, prompt in asked(facts) if role == "meta"]
    assert any("was written to the instructions" in prompt and "It failed." in prompt for prompt in metas)


# Migration


def test_migrants_are_copies_that_arrive_as_roots_next_door(run: Run) -> None:
    _, report, facts = run
    assert moved(facts)
    sent = Counter(
        (name, target)
        for event in moved(facts)
        for name in names(event.data, "programs")
        for target in names(event.data, "to")
    )
    assert set(sent.values()) == {1}
    copies = [each for each in programs(report.pool) if "origin" in each.attributes]
    assert Counter((str(each.attributes["origin"]), each.attributes["island"]) for each in copies) == sent
    for each in copies:
        origin = report.pool[str(each.attributes["origin"])]
        assert (each.parents, each.artifact, each.scores) == ((), origin.artifact, origin.scores)
        assert each.attributes["home"] == origin.attributes["island"] != each.attributes["island"]
        assert "origin" not in origin.attributes
    assert len({name for name, _ in sent}) == len({str(each.attributes["origin"]) for each in copies})


@pytest.mark.parametrize(
    ("topology", "targets"), [("complete", {0: [1, 2, 3], 2: [0, 1, 3]}), ("ring", {0: [1, 3], 2: [1, 3]})]
)
def test_where_they_go(topology: str, targets: dict[int, list[int]]) -> None:
    _, _, facts = ran(algorithm(islands=4, migration={"every": 4, "topology": topology}), max_in_flight=8)
    for event in moved(facts):
        island = cast(int, event.data["island"])
        assert event.data["to"] == targets.get(island, event.data["to"])
    assert moved(facts)


def test_without_roads_nobody_moves() -> None:
    _, report, facts = ran(algorithm(migration={"every": 4, "topology": "empty"}))
    assert not moved(facts)
    assert not [each for each in programs(report.pool) if "origin" in each.attributes]


def test_an_island_sends_every_so_many_of_its_own_epochs() -> None:
    _, _, facts = ran(algorithm(epoch=2, migration={"every": 3}))
    epochs = [event.data for event in events_of(facts, "code_evolve.epoch")]
    for island in range(3):
        own = [cast(int, data["epoch"]) for data in epochs if data["island"] == island]
        assert own == list(range(1, len(own) + 1))
        assert sum(event.data["island"] == island for event in moved(facts)) == len(own) // 3


# From outside, and what does not suit it


def test_a_candidate_from_outside_goes_to_an_island() -> None:
    async def give(engine: fe.Engine) -> None:
        await anyio.sleep(30)
        artifact = fe.Artifact({"program.py": "value = 2.9"}, "program")
        await engine.inject(artifact)
        with pytest.raises(InputError, match="the attribute 'island'"):
            await engine.inject(artifact, attributes={"island": 0})
        with pytest.raises(InputError, match="has components"):
            await engine.inject(fe.Artifact({"other.py": ""}, "program"))

    evolved = algorithm()
    report, _ = evolve(evolved, roles=coder, beside=give, budget=fe.Budget(evaluations=60), max_in_flight=6)
    given, *_ = [each for each in programs(report.pool) if each.artifact["program.py"] == "value = 2.9"]
    assert given.attributes["island"] in {0, 1, 2}
    best = evolved.best()
    assert best is not None
    assert best.mean_score >= 2.9


@pytest.mark.parametrize(
    ("problem", "changes", "words"),
    [
        (Numbers(seed="value = none"), {}, "the seed fails: .*no number below the limit"),
        (Numbers(), {"archive": {"name": "grid", "features": ["fitness", "secnds"]}}, "'secnds' is no feature"),
    ],
)
def test_what_can_not_be_begun_with_is_said(problem: Numbers, changes: dict[str, object], words: str) -> None:
    _, report, _ = ran(algorithm(problem, **changes))
    assert isinstance(report.error, InputError)
    assert re.search(words, str(report.error))
    assert "\n" not in str(report.error)


def test_tasks_and_tuning_that_do_not_suit_it_are_refused() -> None:
    rows = house_style_task(make_rows(rules=4, per_example=2, overlap=0.3, rows=20, seed=1))
    with pytest.raises(InputError, match="evolves programs"):
        CodeEvolve(rows)
    with pytest.raises(InputError, match=r"speculation\.alpha"):
        CodeEvolve(NumberTask(), settings(), Tuning(speculation=Speculation(alpha={"evaluate": 0.5})))
    with pytest.raises(InputError, match="can be given workers"):
        CodeEvolve(NumberTask(), settings(), Tuning(workers={"propose": WorkersWanted(3)}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"archive": {"ranges": {"length": [0, 9]}}}, "none of the features"),
        (
            {"archive": {"ranges": {"fitness": [9, 0]}}},
            "goes from 9 to 0, but the first number has to be below the second",
        ),
        ({"archive": {"features": ["fitness", "fitness"]}}, "named twice"),
        ({"exploration": {"initial": 0.9}}, "initial is 0.9, but has to be from 0.2 (least) to 0.5 (most)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        settings(**changes)
