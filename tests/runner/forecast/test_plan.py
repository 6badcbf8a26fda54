"""What a plan foretells: by simulated runs of the configuration itself, without asking any model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import Config, parse_config
from flowevolve.runner.forecast.forecast import Forecasts
from flowevolve.runner.run import run
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.metric import MetricTask

SHORT = house_style_task(make_rows(rules=12, per_example=3, overlap=0.3, rows=24, seed=1))
NOBODY = {
    "backend": "openai",
    "base_url": "http://127.0.0.1:9/v1",
    "model": "m",
    "prices": {"m": {"input": 1, "output": 4}},
}
QWEN = "qwen3-8b-h100"


def configure(**sections: object) -> Config:
    return parse_config({"preset": "plain", "budget": {"proposals": 4}, "llm": NOBODY, **sections}, "test")


def plan(config: Config, **more: object) -> Forecasts:
    return fe.plan(config, **{"task": SHORT, "profiles": [QWEN], **more})  # type: ignore[arg-type]


def test_a_run_takes_about_what_was_foretold_and_nobody_was_asked() -> None:
    row = plan(configure()).rows[0]
    simulated = configure(clock="virtual", llm={**NOBODY, "backend": "sim"}, sim={"preset": "noisy"}, seed=77)

    async def go() -> fe.Result:
        return await run(simulated, task=SHORT)

    taken = clock.run(go, clock="virtual")
    assert row.dollars is not None
    assert taken.llm.dollars is not None
    for foretold, actual in (
        (row.hours, taken.wall_seconds / 3600),
        (row.input_tokens, taken.llm.usage.prompt_tokens),
        (row.output_tokens, taken.llm.usage.completion_tokens),
        (row.dollars, taken.llm.dollars),
        (row.proposals, taken.proposals),
    ):
        assert foretold.low <= actual <= foretold.high
    assert row.simulated == 1
    assert row.ends == "budget.proposals"


def test_the_same_plan_foretells_the_same() -> None:
    assert plan(configure()).to_json() == plan(configure()).to_json()


def test_a_long_run_is_simulated_in_part_and_ends_by_its_nearest_limit() -> None:
    row = plan(configure(budget={"hours": 5, "dollars": 1e6})).rows[0]
    assert row.ends == "budget.hours"
    assert row.hours.expected == pytest.approx(5)
    assert row.simulated < 0.2
    assert row.proposals.expected > 100


def test_a_price_that_is_not_known_leaves_the_dollars_out() -> None:
    row = plan(configure(llm={**NOBODY, "prices": {}})).rows[0]
    assert row.dollars is None
    assert row.to_json()["dollars"] is None


def test_widths_profiles_and_models_stand_side_by_side() -> None:
    prices = {**NOBODY["prices"], "dear": {"input": 10, "output": 40}}  # type: ignore[dict-item]
    config = configure(budget={"proposals": 2}, llm={**NOBODY, "prices": prices})
    found = plan(config, widths=[2, 16], profiles=[QWEN, "gpt-4o-mini-api"], models=["m", "dear"])
    assert [(row.width, row.profile, row.model) for row in found.rows[:3]] == [
        (2, QWEN, "m"),
        (2, QWEN, "dear"),
        (2, "gpt-4o-mini-api", "m"),
    ]
    narrow, dear, wide = found.rows[0], found.rows[1], found.rows[4]
    assert wide.hours.expected < narrow.hours.expected
    assert narrow.dollars is not None
    assert dear.dollars is not None
    assert dear.dollars.expected > 5 * narrow.dollars.expected
    taken = found.rows[found.taken]
    assert (taken.width, taken.model) == (16, "m")
    assert "take width 16" in found.because


def test_a_narrow_width_is_named_as_what_limits() -> None:
    config = configure(budget={"proposals": 30}, llm={**NOBODY, "concurrency": 2})
    assert plan(config).rows[0].limit == "width"


def test_a_rate_limit_is_named_as_what_limits() -> None:
    row = plan(configure(llm={**NOBODY, "requests_per_minute": 30})).rows[0]
    assert row.limit == "rate limit"


def test_a_full_server_is_named_as_what_limits(tmp_path: Path) -> None:
    profile = tmp_path / "small.toml"
    profile.write_text(
        "step_seconds = 0.01\nper_sequence_seconds = 0.001\nprefill_seconds_per_token = 0.0\nmax_num_seqs = 2\n"
        "cache_blocks = 100\noutput = {median = 100.0, sigma = 0.3, most = 1000}\n"
    )
    assert plan(configure(), profiles=[str(profile)]).rows[0].limit == "server full"


def test_lockstep_is_named_as_what_limits() -> None:
    assert plan(configure(algorithm={"mode": "sync"})).rows[0].limit == "lockstep"


def test_a_server_that_is_there_twice_serves_twice_as_many(tmp_path: Path) -> None:
    """A batch of one: two addresses are two of them."""
    profile = tmp_path / "one.toml"
    profile.write_text(
        "step_seconds = 0.01\nper_sequence_seconds = 0.0\nprefill_seconds_per_token = 0.0\nmax_num_seqs = 1\n"
        "cache_blocks = 100\noutput = {median = 100.0, sigma = 0.3, most = 1000}\n"
    )
    one = {name: value for name, value in NOBODY.items() if name != "base_url"}
    two = {**one, "base_urls": ["http://127.0.0.1:8/v1", "http://127.0.0.1:9/v1"]}
    hours = [plan(configure(llm=llm), profiles=[str(profile)]).rows[0].hours.expected for llm in (NOBODY, two)]
    assert hours[1] < 0.7 * hours[0]


def recorded(out: Path, **sections: object) -> fe.Result:
    config = configure(clock="virtual", llm={"backend": "sim", "concurrency": 2}, **sections)

    async def go() -> fe.Result:
        return await run(config, task=SHORT, out=out)

    return clock.run(go, clock="virtual")


def test_lengths_come_from_an_earlier_run(tmp_path: Path) -> None:
    earlier = recorded(tmp_path / "a", sim={"profile": "gpt-4o-mini-api"})
    without, measured = plan(configure()).rows[0], plan(configure(), lengths=tmp_path / "a")
    assert measured.measured
    row = measured.rows[0]
    assert row.output_tokens.low < earlier.llm.usage.completion_tokens < row.output_tokens.high
    assert row.output_tokens.expected < 0.6 * without.output_tokens.expected
    assert row.output_tokens.factor < without.output_tokens.factor


def notes(config: Config, lengths: Path, task: fe.Task = SHORT) -> list[str]:
    said: list[str] = []
    plan(config, task=task, lengths=lengths, note=said.append)
    return [each for each in said if each.startswith("note: ")]


def test_an_earlier_run_of_another_task_or_model_is_told(tmp_path: Path) -> None:
    recorded(tmp_path / "a", sim={"profile": "gpt-4o-mini-api"})
    alike = {**NOBODY, "model": "simulated", "prices": {}}
    assert notes(configure(llm=alike), tmp_path / "a") == []
    rows = [{"text": f"ticket {number}", "label": "bug"} for number in range(12)]
    other = MetricTask("Classify the ticket.", rows, lambda row, output: 0.5)
    assert notes(configure(llm=alike), tmp_path / "a", other) == [
        f"note: --lengths {tmp_path / 'a'}: that run is of task 'house_style', but this one is of task 'prompt'"
    ]
    roles = {"reflection": {"model": "large"}}
    assert notes(configure(llm={**alike, "roles": roles}), tmp_path / "a") == [
        f"note: --lengths {tmp_path / 'a'}: the answers of reflection there are of 'simulated', and here of 'large'"
    ]


def test_roles_that_an_earlier_run_never_asked_are_told(tmp_path: Path) -> None:
    recorded(tmp_path / "a")
    config = configure(llm={**NOBODY, "model": "simulated", "prices": {}}, algorithm={"name": "levi"}, preset="default")
    assert notes(config, tmp_path / "a") == [
        f"note: --lengths {tmp_path / 'a'}: there are no answers of {role}; they are taken to be like those of the others"
        for role in ("large", "small")
    ]


def test_a_probe_measures_lengths_by_a_short_real_run_and_says_first_what_it_may_take() -> None:
    said: list[str] = []
    config = configure(clock="virtual", llm={"backend": "sim"}, sim={"profile": "gpt-4o-mini-api"})
    found = plan(config, profiles=[QWEN], probe=2, note=said.append)
    assert found.measured
    assert "probing: 2 proposals on few rows, about " in said[0]
    assert "the probe took " in said[1]
    spoken = [int(word.replace(",", "")) for word in said[0].split() if word.replace(",", "").isdecimal()]
    taken = int(said[1].split()[3].replace(",", ""))
    assert taken <= spoken[-1]


def test_a_metric_that_can_do_nothing_with_made_up_answers_does_no_harm() -> None:
    def metric(row: Mapping[str, object], output: str) -> bool:
        raise ValueError("no JSON")

    rows = [{"text": f"ticket {number}", "label": "bug"} for number in range(12)]
    task = MetricTask("Classify the ticket.", rows, metric)
    row = plan(configure(), task=task).rows[0]
    assert row.proposals.expected == 4


def test_programs_are_not_run_but_take_as_long_as_the_first() -> None:
    sections = {"algorithm": {"name": "one_plus_lambda"}, "task": {"name": "program", "problem": "flow_shop"}}
    row = plan(parse_config({**sections, "llm": NOBODY, "budget": {"proposals": 6}}, "test"), task=None).rows[0]
    assert row.proposals.expected == 6
    assert row.hours.expected > 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"profiles": []}, "name a profile of the server that will answer, with --profiles"),
        ({"profiles": ["h100"]}, "unknown profile 'h100'"),
        ({"widths": [8, 0]}, "a width is 0"),
        ({"lengths": "nowhere"}, "nowhere"),
        ({"lengths": "nowhere", "probe": 2}, "give one of the two"),
    ],
)
def test_bad_input_is_refused(more: Mapping[str, object], said: str) -> None:
    with pytest.raises(InputError) as raised:
        plan(configure(), **more)
    assert said in str(raised.value)


def test_a_budget_in_dollars_needs_prices() -> None:
    with pytest.raises(InputError, match=r"budget\.dollars needs the price of 'm'"):
        plan(configure(llm={**NOBODY, "prices": {}}, budget={"dollars": 1}))


def test_a_run_with_hardly_an_answer_has_no_lengths(tmp_path: Path) -> None:
    recorded(tmp_path / "a", budget={"tokens": 1})
    with pytest.raises(InputError, match="name a longer run"):
        plan(configure(), lengths=tmp_path / "a")


def test_in_a_notebook_it_says_what_to_do() -> None:
    async def cell() -> None:
        plan(configure())

    with pytest.raises(InputError, match="call it in a thread"):
        asyncio.run(cell())


def test_a_role_that_nobody_calls_is_told_before_anything_is_simulated() -> None:
    wrong = configure(llm={**NOBODY, "roles": {"reflektion": {"temperature": 1.0}}})
    with pytest.raises(InputError, match=r"llm\.roles\.reflektion: .* did you mean 'reflection'"):
        plan(wrong)
