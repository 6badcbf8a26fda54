"""Racing: the sound bound never errs, the others stop what they say they stop."""

from __future__ import annotations

import math
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.policies import NoRacing, Race, Speculation, Standing, ValidationAcceptance
from flowevolve.policies.acceptance import Everything, Front, Improvement
from flowevolve.policies.racing import Bound, Confidence, Prefix
from flowevolve.runner.registries import RACING
from flowevolve.stages.evaluate import beats
from flowevolve.tasks.rollout_checks import MARGIN

IDS = tuple(f"e{n}" for n in range(8))
grades = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=8, max_size=8)


def scores_of(values: list[float]) -> dict[str, float]:
    return dict(zip(IDS, values, strict=True))


def race(
    scores: dict[str, float], incumbent: list[float], prefix: int = 8, acceptance: ValidationAcceptance | None = None
) -> Race:
    best = scores_of(incumbent)
    return Race(IDS, prefix, scores, Standing(best, best), acceptance or Improvement())


@given(grades, grades, st.permutations(IDS), st.sampled_from([Improvement(), Front(), Everything()]))
def test_the_bound_stops_only_what_would_not_have_been_accepted(
    values: list[float], incumbent: list[float], arrival: list[str], acceptance: ValidationAcceptance
) -> None:
    full, seen = scores_of(values), {}
    for name in arrival[:-1]:
        seen[name] = full[name]
        facts = race(seen, incumbent, acceptance=acceptance)
        if Bound().hopeless(facts) is not None:
            assert not acceptance.admits(full, facts.standing)
            return


@given(grades, grades, st.permutations(IDS))
def test_the_bound_stops_as_soon_as_nothing_can_help(
    values: list[float], incumbent: list[float], arrival: list[str]
) -> None:
    full, seen = scores_of(values), {}
    for name in arrival[:-1]:
        seen[name] = full[name]
        most = sum(seen.values()) + len(IDS) - len(seen)
        stopped = Bound().hopeless(race(seen, incumbent)) is not None
        assert stopped == (most <= sum(incumbent))


def test_what_needs_whole_vectors_is_never_stopped_by_the_bound() -> None:
    assert Bound().hopeless(race({"e0": 0.0}, [1.0] * 8, acceptance=Everything())) is None
    assert NoRacing().hopeless(race({"e0": 0.0}, [1.0] * 8)) is None


@given(grades, grades, st.integers(1, 8), st.permutations(IDS))
def test_prefix_stops_at_the_prefix_unless_it_is_ahead_there(
    values: list[float], incumbent: list[float], prefix: int, arrival: list[str]
) -> None:
    full, seen = scores_of(values), {}
    for name in arrival[:-1]:
        seen[name] = full[name]
        complete = set(IDS[:prefix]) <= set(seen)
        stopped = Prefix().hopeless(race(dict(seen), incumbent, prefix)) is not None
        ahead = complete and sum(values[:prefix]) > sum(incumbent[:prefix])
        perfect = sum(incumbent[:prefix]) == prefix
        assert stopped == (complete and not ahead and not perfect)


@pytest.mark.parametrize("acceptance", [Improvement(), Front()])
def test_a_prefix_on_which_nothing_can_be_better_stops_nothing(acceptance: ValidationAcceptance) -> None:
    level = {"e0": 1.0, "e1": 1.0}
    assert Prefix().hopeless(race(level, [1.0, 1.0, *[0.0] * 6], 2, acceptance)) is None
    assert Prefix().hopeless(race(level | {"e1": 0.5}, [1.0, 1.0, *[0.0] * 6], 2, acceptance)) is None
    assert Prefix(ceiling=2.0).hopeless(race(level, [1.0, 1.0, *[0.0] * 6], 2, acceptance)) is not None


@pytest.mark.parametrize("policy", [Bound, Prefix])
def test_a_score_above_the_ceiling_is_named_with_the_setting(policy: type[Bound | Prefix]) -> None:
    for facts in (race({"e0": 40.0}, [0.0] * 8, 1), race({"e0": 0.0}, [40.0] * 8, 1)):
        with pytest.raises(InputError, match=r"racing\.ceiling is 1, but there is a score of 40"):
            policy().hopeless(facts)
        assert (policy(ceiling=math.inf).hopeless(facts) is None) == (policy is Bound or facts.scores["e0"] > 0)


@pytest.mark.parametrize("policy", [Bound, Prefix])
def test_a_score_that_only_rounding_put_above_the_ceiling_is_taken(policy: type[Bound | Prefix]) -> None:
    """Tasks and metrics may give such scores."""
    assert policy().hopeless(race({"e0": 1.0 + MARGIN / 2}, [0.0] * 8, 1)) is None
    stopped = policy().hopeless(race({"e0": 0.5}, [1.0 + MARGIN / 2] * 8, 1)) is not None
    assert stopped == (policy is Bound)  # nothing beats such an incumbent's prefix, so it decides nothing


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("confidence", {"least": 0}),
        ("confidence", {"delta": 0.0}),
        ("confidence", {"delta": 30.0}),
        ("confidence", {"delta": -1.0}),
        ("bound", {"ceiling": math.nan}),
        ("prefix", {"ceiling": math.nan}),
    ],
)
def test_settings_out_of_range_are_refused(policy: str, settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=rf"racing\.{next(iter(settings))} is "):
        RACING.make(policy, settings, "racing")


@given(
    differences=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25]), min_size=2, max_size=24),
    more=st.integers(0, 30),
    least=st.integers(1, 6),
    delta=st.sampled_from([0.05, 0.3]),
)
def test_confidence_is_the_test_that_it_says_it_is(
    differences: list[float], more: int, least: int, delta: float
) -> None:
    n, total = len(differences), len(differences) + more
    names = [f"e{number}" for number in range(total)]
    incumbent = dict.fromkeys(names, 0.5)
    scores = {name: 0.5 + difference for name, difference in zip(names, differences, strict=False)}
    stopped = Confidence(delta, least).hopeless(
        Race(tuple(names), total, scores, Standing(incumbent, incumbent), Improvement())
    )
    looked = n >= max(2, least) and n % least == 0
    if len(set(differences)) == 1:
        assert (stopped is not None) == (looked and differences[0] < 0 and n >= 2 * max(2, least))
        return
    mean = sum(differences) / n
    deviation = math.sqrt(sum((difference - mean) ** 2 for difference in differences) / (n - 1))
    looks = max(1, (total - 1) // least)
    bound = mean + NormalDist().inv_cdf(1 - delta / looks) * deviation / math.sqrt(n) * math.sqrt(1 - n / total)
    if abs(bound) > 1e-9:
        assert (stopped is not None) == (looked and bound < 0)


def test_confidence_keeps_its_level() -> None:
    """Candidates exactly as good as the incumbent's mean plus a little are seldom stopped; clearly worse ones mostly."""
    ids = [f"x{n}" for n in range(96)]

    def stopped(gain: float, random: Random) -> bool:
        incumbent = {name: random.choice([0.0, 0.5, 1.0]) for name in ids}
        noise = {name: random.choice([-0.5, 0.0, 0.5]) for name in ids}
        centre = sum(noise.values()) / len(ids)
        full = {name: incumbent[name] + noise[name] - centre + gain for name in ids}
        seen: dict[str, float] = {}
        for name in random.sample(ids, len(ids) - 1):
            seen[name] = full[name]
            facts = Race(ids, len(ids), seen, Standing(incumbent, incumbent), Improvement())
            if Confidence(delta=0.05).hopeless(facts) is not None:
                return True
        return False

    random = Random(7)
    assert sum(stopped(0.01, random) for _ in range(200)) <= 0.05 * 200 + 8
    assert sum(stopped(-0.3, random) for _ in range(50)) >= 45


@pytest.mark.parametrize(("gains", "losses"), [(8, 2), (20, 14), (3, 0), (40, 30)])
def test_confidence_keeps_its_level_on_scores_of_zero_and_one(gains: int, losses: int) -> None:
    """Better candidates, with most examples tied: they must not be stopped because the first examples say nothing."""
    ids = [f"x{n}" for n in range(90)]
    incumbent = {name: float(place < losses) for place, name in enumerate(ids)}
    full = {name: float(losses <= place < losses + gains) for place, name in enumerate(ids)}
    random, stopped = Random(3), 0
    for _ in range(300):
        seen: dict[str, float] = {}
        for name in random.sample(ids, len(ids) - 1):
            seen[name] = full[name]
            if Confidence(delta=0.05).hopeless(Race(ids, 90, seen, Standing(incumbent, incumbent), Improvement())):
                stopped += 1
                break
    assert stopped <= 0.05 * 300 + 10


@pytest.mark.parametrize(("score", "best", "stopped_at"), [(0.0, 1.0, [16, 24, 32]), (0.5, 0.5, []), (1.0, 0.0, [])])
def test_losing_everywhere_alike_is_hopeless_and_a_tie_is_not(score: float, best: float, stopped_at: list[int]) -> None:
    ids = [f"x{n}" for n in range(40)]
    incumbent = dict.fromkeys(ids, best)
    standing = Standing(incumbent, incumbent)
    seen = [Race(ids, 40, dict.fromkeys(ids[:n], score), standing, Improvement()) for n in range(1, 40)]
    assert [len(facts.scores) for facts in seen if Confidence().hopeless(facts) is not None] == stopped_at


def test_examples_that_the_incumbent_has_no_score_on_count_for_nothing() -> None:
    """A user's policy may choose other examples for each candidate."""
    ids = [f"x{n}" for n in range(40)]
    incumbent = dict.fromkeys(ids[20:], 1.0)
    facts = [Race(ids, 40, dict.fromkeys(ids[:n], 0.0), Standing(incumbent, incumbent), Improvement()) for n in (8, 36)]
    assert [Confidence().hopeless(each) is not None for each in facts] == [False, True]


@given(st.floats(0.01, 1.0), st.integers(1, 200))
def test_a_quorum_is_at_least_one_and_at_most_all(alpha: float, requests: int) -> None:
    quorum = Speculation({"evaluate": alpha}).quorum("evaluate", requests)
    assert 1 <= quorum <= requests
    assert quorum >= alpha * requests - 1e-6
    assert Speculation().quorum("evaluate", requests) == requests


def test_a_quorum_is_not_rounded_up_by_floating_point() -> None:
    assert Speculation({"evaluate": 0.07}).quorum("evaluate", 100) == 7
    assert Speculation({"evaluate": 0.55}).quorum("evaluate", 100) == 55


@pytest.mark.parametrize("alpha", [0.0, -0.5, 1.5])
def test_alpha_is_a_fraction(alpha: float) -> None:
    with pytest.raises(InputError, match=r"speculation\.alpha\.evaluate"):
        Speculation({"evaluate": alpha})


def test_the_prefix_is_compared_with_the_same_examples_of_the_incumbent() -> None:
    incumbent = {"a": 0.0, "b": 1.0}
    assert beats({"a": 0.5}, incumbent, ["a"])
    assert not beats({"b": 0.5}, incumbent, ["b"])
