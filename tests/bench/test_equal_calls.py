"""The bench at equal metric calls: its worlds, and what is said of a result."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from threading import Lock

import pytest

from bench.equal_calls.runs import CountedModel, Outcome, Pair, compare
from bench.equal_calls.section import answer, by_world, lead_of, score, section
from bench.equal_calls.timing import AT_ONCE
from bench.equal_calls.world import SEED_PROMPT, WORLDS, RulesAdapter, World

FAST = World("takes no time", reflection_seconds=0.0, call_seconds=0.0, row_seconds=0.0)


def test_a_prompt_is_worth_the_rules_it_states() -> None:
    adapter = RulesAdapter(FAST, 1)
    right = "\n".join(f"Rule {rule}: right" for rule in range(FAST.rules))

    def held_out(prompt: str, adapter: RulesAdapter = adapter) -> float:
        return adapter.held_out({"prompt": prompt})

    assert held_out(SEED_PROMPT) == 0.0
    assert held_out(right) == pytest.approx(FAST.obedience)
    assert held_out(right.replace("right", "wrong")) == 0.0
    noted = RulesAdapter(replace(FAST, harm=0.1), 1)
    assert held_out(f"{right}\nNote 7", noted) < held_out(right, noted)


def test_a_rule_counts_only_in_the_part_that_it_belongs_to_and_feedback_names_it_there_alone() -> None:
    adapter = RulesAdapter(replace(FAST, parts=2, obedience=1.0), 1)
    every = "\n".join(f"Rule {rule}: right" for rule in range(FAST.rules))
    assert list(adapter.seed_candidate()) == ["part 0", "part 1"]
    assert adapter.held_out({"part 0": every, "part 1": every}) == 1.0
    half = adapter.held_out({"part 0": every, "part 1": SEED_PROMPT})
    assert 0.0 < half < 1.0
    assert half + adapter.held_out({"part 0": SEED_PROMPT, "part 1": every}) == pytest.approx(1.0)
    batch = adapter.evaluate(adapter.rows(0, 5), adapter.seed_candidate(), capture_traces=True)
    dataset = adapter.make_reflective_dataset(adapter.seed_candidate(), batch, ["part 1"])
    named = [int(rule) for record in dataset["part 1"] for rule in re.findall(r"\d+", record["Feedback"])]
    assert named
    assert all(rule % 2 == 1 for rule in named)


def test_reflection_states_what_was_missing() -> None:
    adapter = RulesAdapter(replace(FAST, noise=0.0, wrong=0.0), 1)
    (row,) = adapter.rows(0, 1)
    batch = adapter.evaluate([row], {"prompt": SEED_PROMPT}, capture_traces=True)
    dataset = adapter.make_reflective_dataset({"prompt": SEED_PROMPT}, batch, ["prompt"])
    reply = adapter.reflect(f"```\n{SEED_PROMPT}\n```\n{json.dumps(dataset)}")
    assert reply.count("right") == 2
    assert adapter.calls == 1


@pytest.mark.parametrize("world", ["plain", "failing merges"])
def test_both_spend_the_same_calls_and_ours_no_more_than_it_may(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = replace(WORLDS[world], reflection_seconds=0.0, call_seconds=0.0, row_seconds=0.0)
    monkeypatch.setattr("bench.equal_calls.runs.WORLDS", {world: fast})
    pair = compare(world, 3, 150)
    assert pair.ours.calls <= 150 <= pair.gepa.calls
    assert pair.ours.calls > 100
    assert pair.ours.score > 0.0


def test_calls_of_the_reflection_model_are_counted_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.equal_calls.runs.WORLDS", {"plain": FAST})
    asked, lock, reflect = 0, Lock(), RulesAdapter.reflect

    def counted(adapter: RulesAdapter, prompt: object) -> str:
        nonlocal asked
        with lock:
            asked += 1
        return reflect(adapter, prompt)

    monkeypatch.setattr(RulesAdapter, "reflect", counted)
    pair = compare("plain", 3, 150)
    assert pair.gepa.reflections >= pair.gepa.candidates - 1, "a call for each candidate but the seed"
    assert pair.ours.reflections >= 1
    assert pair.gepa.reflections + pair.ours.reflections == asked
    assert pair.as_json()["ours"] == asdict(pair.ours)


def test_a_call_of_the_reflection_model_that_fails_is_counted() -> None:
    model = CountedModel(RulesAdapter(replace(FAST, merges="by failing"), 3))
    with pytest.raises(ValueError, match="something else"):
        model("merge these")
    assert model.calls == 1


def test_the_section_says_whether_the_goal_is_met() -> None:
    def said(score: float, seconds: float, calls: int, seeds: int = 2) -> str:
        outcomes = Outcome(0.5, 10.0, 903, 20, 30), Outcome(score, seconds, calls, 20, 30)
        pairs = [Pair("plain", seed, *outcomes).as_json() for seed in range(seeds)]
        return section({"pairs": pairs, "settings": {"seeds": seeds, "calls": 900}, "worlds": {"plain": "some"}})

    assert "is met." in said(0.6, 4.0, 900)
    assert "is missed." in said(0.6, 4.0, 900, seeds=1), "of one seed, who knows"
    assert "Ours never went over the limit" in said(0.6, 4.0, 900)
    assert "is missed." in said(0.4, 6.0, 904)
    assert "went over the limit by up to 4 calls" in said(0.4, 6.0, 904)


def test_the_section_says_what_is_left_of_the_time_where_rows_are_answered_at_once() -> None:
    pair = Pair(AT_ONCE, 0, Outcome(0.5, 10.0, 903, 20, 30), Outcome(0.5, 4.0, 900, 20, 30))
    made = {"pairs": [pair.as_json()], "settings": {"seeds": 1, "calls": 900}, "worlds": {AT_ONCE: "some"}}
    assert "in *rows at once* ours takes 0.40" in " ".join(section(made).split())
    adapter = RulesAdapter(WORLDS[AT_ONCE], 1)
    assert adapter.world.row_seconds == 0.0


def test_the_section_says_how_it_is_with_fewer_calls_and_where_ours_is_below() -> None:
    def pairs(*, ours: float) -> list[object]:
        outcomes = Outcome(0.5, 10.0, 160, 4, 30), Outcome(ours, 4.0, 150, 4, 30)
        return [Pair("plain", seed, *outcomes).as_json() for seed in range(2)]

    content = {"pairs": pairs(ours=0.5), "settings": {"seeds": 2, "calls": 900}, "worlds": {"plain": "some"}}
    few = section({**content, "fewer": {"150": pairs(ours=0.4), "300": pairs(ours=0.6)}})
    assert "| 150 | 160 and 150 | -0.100 (-0.100 to -0.100) | 0.40 (0.40–0.40) | 1.0 | plain |" in few
    assert "| 300 | 160 and 150 | +0.100 (+0.100 to +0.100) | 0.40 (0.40–0.40) | 1.0 | none |" in few
    assert "fewer" not in section(content)


def test_seeds_that_had_been_looked_at_are_named_with_the_difference_without_them() -> None:
    def said(*leads: float, first: int) -> str:
        pairs = [
            Pair("plain", seed, Outcome(0.5, 10.0, 903, 20, 30), Outcome(0.5 + lead, 4.0, 900, 20, 30)).as_json()
            for seed, lead in enumerate(leads, first)
        ]
        content = {"pairs": pairs, "settings": {"seeds": len(leads), "calls": 900}, "worlds": {"plain": "some"}}
        return " ".join(section(content).split())

    page = said(0.4, 0.4, -0.1, -0.1, first=100)
    assert "Without these seeds the difference over all worlds is -0.100 (-0.100 to -0.100)." in page
    assert "Without these seeds" not in said(0.4, 0.4, first=102)


def test_the_page_names_the_worlds_where_ours_is_clearly_apart_and_the_mean_without_the_one_that_gains_most() -> None:
    leads = {"high": (0.3, 0.3), "low": (-0.1, -0.1), "either": (0.4, -0.2)}
    pairs = [
        Pair(world, seed, Outcome(0.5, 10.0, 903, number, 30), Outcome(0.5 + lead, 4.0, 900, 20, 30)).as_json()
        for number, (world, each) in enumerate(leads.items())
        for seed, lead in enumerate(each)
    ]
    content = {"pairs": pairs, "settings": {"seeds": 2, "calls": 900}, "worlds": dict.fromkeys(leads, "")}
    page = section(content).replace("\n", " ")
    assert "the whole interval on one side of 0: above in high, and below in low." in page
    assert "Without *high*, which gains most, the mean difference is +0.000 (-1.375 to +1.375)." in page
    said = "below in 1 of 3 worlds (clearly in 1; clearly above in 1)"
    assert all(said in each for each in (answer(content), page, score(content)))
    assert f"{said} and 3 of 6 pairs (above in 3)" in page
    alone = section({**content, "pairs": pairs[:2], "worlds": {"high": ""}})
    assert "Without" not in alone


def test_worlds_in_which_gepa_makes_the_same_runs_are_one_baseline() -> None:
    def world(name: str, *leads: float, candidates: int = 20) -> list[Pair]:
        return [
            Pair(name, seed, Outcome(0.5, 10.0 + lead, 903, candidates, 30), Outcome(0.5 + lead, 4.0, 900, 20, 30))
            for seed, lead in enumerate(leads)
        ]

    def made(*pairs: Pair) -> dict[str, object]:
        names = list(dict.fromkeys(pair.world for pair in pairs))
        return {
            "pairs": [pair.as_json() for pair in pairs],
            "settings": {"seeds": 2, "calls": 900},
            "worlds": dict.fromkeys(names, ""),
        }

    up, down, other = world("up", 0.2, -0.2), world("down", -0.2, 0.2), world("other", 0.3, 0.3, candidates=3)
    content = made(*up, *down, *other)
    lead = lead_of(by_world(content))
    assert (lead.value, lead.low, lead.high) == pytest.approx((0.1, 0.1, 0.1))  # what one gains the other loses
    page = " ".join(section(content).split())
    assert "gepa's runs are the same in *up*, *down* (there it has 0.50, its highest score anywhere, on 2 of 2" in page
    assert "so 3 worlds are 2 baselines" in page
    assert "is +0.100 (+0.100 to +0.100), drawn over seeds, and +0.100 (" in page
    assert "baselines" not in section(made(*up, *other))
    same = [world(name, 0.1, 0.1, candidates=number) for name, number in (("up", 20), ("down", 20), ("other", 3))]
    said = " ".join(section(made(*(pair for pairs in same for pair in pairs))).split())
    assert "is +0.100 (+0.100 to +0.100), drawn over seeds, and +0.100 (+0.100 to +0.100)" in said


def test_a_difference_is_clear_or_not() -> None:
    def said(*leads: float) -> str:
        pairs = [
            Pair("plain", seed, Outcome(0.5, 10.0, 903, 20, 30), Outcome(0.5 + lead, 4.0, 900, 20, 30)).as_json()
            for seed, lead in enumerate(leads)
        ]
        return score({"pairs": pairs, "settings": {"seeds": len(leads), "calls": 900}, "worlds": {"plain": ""}})

    assert said(0.1, 0.1).startswith("clearly above: +0.100 ")
    assert said(-0.1, -0.1).startswith("clearly below: -0.100 ")
    assert said(-0.1, 0.1).startswith("no clear difference: +0.000 ")


def test_how_many_more_calls_of_the_reflection_model_ours_makes_is_said_where_they_were_counted() -> None:
    pairs = [
        Pair(world, 0, Outcome(0.5, 10.0, 903, 20, gepas), Outcome(0.5, 4.0, 900, 20, ours)).as_json()
        for world, gepas, ours in (("one", 10, 40), ("other", 40, 60))
    ]
    content = {"pairs": pairs, "settings": {"seeds": 1, "calls": 900}, "worlds": {"one": "", "other": ""}}
    assert answer(content).endswith("; 2.0 (1.5 to 4.0 by world) times gepa's reflection calls")
    assert score(content).endswith("; 2.0 (1.5 to 4.0 by world) times gepa's reflection calls")
    page = " ".join(section(content).split())
    assert "ours makes 2.0 times gepa's calls, 1.5 to 4.0 by world" in page
    assert "| 0.40 | 4.0 |" in page
    for pair in pairs:
        for of in ("gepa", "ours"):
            side = pair[of]
            assert isinstance(side, dict)
            del side["reflections"]
    assert "reflection" not in answer(content)
    page = " ".join(section(content).split())
    assert "were not counted" in page
    assert "| 0.40 | – |" in page


def test_of_the_only_world_that_is_clearly_above_the_calls_of_the_reflection_model_are_told() -> None:
    pairs = [
        Pair(world, seed, Outcome(0.5, 10.0, 903, 20, 10), Outcome(0.5 + lead, 4.0, 900, 20, ours)).as_json()
        for world, lead, ours in (("level", 0.0, 10), ("ahead", 0.2, 30))
        for seed in range(4)
    ]
    content = {"pairs": pairs, "settings": {"seeds": 4, "calls": 900}, "worlds": {"level": "", "ahead": ""}}
    there = "3.0 in the one where ours is clearly better"
    assert score(content).endswith(f"; 2.0 (1.0 to 3.0 by world; {there}) times gepa's reflection calls")
    assert answer(content).endswith("; 2.0 (1.0 to 3.0 by world) times gepa's reflection calls")
