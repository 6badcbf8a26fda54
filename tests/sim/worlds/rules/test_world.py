import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from bench._lib.house_style import expected, perfect_prompt, rules_of, shipped_rows
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatRequest, Message
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import (
    ReflectionExample,
    judge_prompt,
    parse_verdict,
    reflection_prompt,
)
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.rules.world import PRESETS, RulesParams, RulesWorld
from flowevolve.tasks.house_style import HOUSE_STYLE, SEED_PROMPT, house_style_task

Row = Mapping[str, JSON]

ROWS = shipped_rows()
TRAIN = [row for row in ROWS if row["split"] == "train"]
VAL = [row for row in ROWS if row["split"] == "val"]
WORLD = RulesWorld()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def chat(user: str, system: str = "") -> ChatRequest:
    messages = (Message("system", system),) if system else ()
    return ChatRequest("sim", (*messages, Message("user", user)))


def rollout(world: RulesWorld, prompt: str, row: Row, rng: random.Random) -> tuple[ReflectionExample, float]:
    request = str(row["prompt"])
    answer = world.reply(chat(request, prompt), rng)
    met = {rule.describe(): rule.met_by(answer) for rule in rules_of(row)}
    feedback = "\n".join(f"{'Met' if kept else 'Not met'}: {sentence}" for sentence, kept in met.items())
    return ReflectionExample({"request": request}, answer, feedback), fmean(met.values())


def mean_score(world: RulesWorld, prompt: str, rows: Sequence[Row], seed: int = 0) -> float:
    rng = random.Random(seed)
    return fmean(rollout(world, prompt, row, rng)[1] for row in rows)


def propose(world: RulesWorld, prompt: str, minibatch: Sequence[Row], rng: random.Random) -> tuple[str, float]:
    """One reflection on a minibatch: the proposed prompt, and the summed score of ``prompt`` on it."""
    rollouts = [rollout(world, prompt, row, rng) for row in minibatch]
    asked = reflection_prompt(SHIPPED, "system_prompt", prompt, [example for example, _ in rollouts])
    try:
        proposed = read_instruction(world.reply(chat(asked), rng))
    except UnparsableReplyError:
        proposed = prompt
    return proposed, sum(score for _, score in rollouts)


def greedy_search(world: RulesWorld, proposals: int, seed: int) -> str:
    rng = random.Random(seed)
    best, best_score = SEED_PROMPT, mean_score(world, SEED_PROMPT, VAL)
    for _ in range(proposals):
        minibatch = rng.sample(TRAIN, 3)
        proposed, before = propose(world, best, minibatch, rng)
        if sum(rollout(world, proposed, row, rng)[1] for row in minibatch) > before:
            score = mean_score(world, proposed, VAL)
            if score > best_score:
                best, best_score = proposed, score
    return best


@given(st.sampled_from(sorted(PRESETS)), st.integers(0, 2**32), st.sampled_from(ROWS))
def test_replies_depend_on_request_and_generator_alone(preset: str, seed: int, row: Row) -> None:
    world = RulesWorld(PRESETS[preset])
    prompt = perfect_prompt(world)
    example, _ = rollout(world, prompt, row, random.Random(seed))
    current = {"system_prompt": prompt}
    for asked in (
        chat(str(row["prompt"]), prompt),
        chat(reflection_prompt(SHIPPED, "system_prompt", SEED_PROMPT, [example])),
        chat(judge_prompt(SHIPPED, {"system_prompt": SEED_PROMPT}, current, [current], current)),
    ):
        first = world.reply(asked, random.Random(seed))
        world.reply(chat("Something else about the weather."), random.Random(1))
        assert RulesWorld(PRESETS[preset]).reply(asked, random.Random(seed)) == first


def test_roles_are_recognised_by_the_text_alone() -> None:
    rng = random.Random(2)
    edit = {"system_prompt": perfect_prompt(WORLD)}
    example = ReflectionExample({"request": "Write about the canteen."}, "Hello", "Not met: Do not use commas.")
    world = RulesWorld(RulesParams(unparsable=0))
    reflection = world.reply(chat(reflection_prompt(SHIPPED, "system_prompt", SEED_PROMPT, [example])), rng)
    assert read_instruction(reflection).startswith(SEED_PROMPT)
    verdict = world.reply(chat(judge_prompt(SHIPPED, {}, edit, [], {"system_prompt": SEED_PROMPT})), rng)
    assert parse_verdict(verdict, ["system_prompt"]).verdict
    assert "the canteen" in world.reply(chat("Write about the canteen."), rng)


@pytest.mark.anyio
async def test_feedback_of_the_task_is_what_the_reflection_model_learns_from() -> None:
    task, world = house_style_task(), RulesWorld(RulesParams(insight=1, conflict=0, noise=0, duplicate=0, unparsable=0))
    rng = random.Random(6)

    async def task_model(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        return world.reply(ChatRequest("sim", tuple(messages)), rng)

    rollout = await task.rollout(task.seed(), task.data.train[0], task_model)
    unmet = [line.removeprefix("Not met: ") for line in rollout.score.feedback.splitlines() if "Not met" in line]
    shown = ReflectionExample(rollout.calls[0].inputs, rollout.output, rollout.score.feedback)
    reply = world.reply(chat(reflection_prompt(SHIPPED, "system_prompt", SEED_PROMPT, [shown])), rng)
    added = read_instruction(reply).splitlines()[1:]
    assert len(added) == 2
    assert {line.removeprefix("- ") for line in added} <= set(unmet)


def test_seed_prompt_is_poor_and_the_optimum_known() -> None:
    assert 0.15 <= mean_score(WORLD, SEED_PROMPT, VAL) <= 0.3
    optimum = expected(WORLD, perfect_prompt(WORLD), VAL)
    assert 0.93 <= optimum <= 0.97
    assert expected(WORLD, perfect_prompt(WORLD), VAL) == optimum
    assert expected(WORLD, SEED_PROMPT, VAL) < optimum - 0.3
    assert mean_score(WORLD, perfect_prompt(WORLD), ROWS, seed=9) == pytest.approx(optimum, abs=0.02)


def kept(params: RulesParams, *lines: str) -> float:
    """How often an instruction of these lines has answers given a title, which is the second rule."""
    world, prompt = RulesWorld(params), "\n".join((SEED_PROMPT, *lines))
    answers = [world.reply(chat(str(VAL[0]["prompt"]), prompt), random.Random(seed)) for seed in range(400)]
    return fmean(HOUSE_STYLE[1].met_by(answer) for answer in answers)


def test_rules_get_in_each_others_way_in_pairs() -> None:
    first, second, third = (f"- {rule.describe()}" for rule in HOUSE_STYLE[:3])
    harsh = RulesParams(interference=0.4)
    assert kept(harsh, second, third) == kept(RulesParams(), second, third)
    assert kept(harsh, first, second) < kept(RulesParams(), first, second) - 0.15


def test_lines_that_state_no_rule_may_do_harm() -> None:
    title, noise = f"- {HOUSE_STYLE[1].describe()}", "- For the request about lamps thank the people."
    harsh = RulesParams(noise_harm=0.1)
    assert kept(harsh, title) == kept(RulesParams(), title)
    assert kept(harsh, title, noise, noise) < kept(harsh, title) - 0.1


def test_perfect_prompt_states_the_rules_in_use_only() -> None:
    text = perfect_prompt(RulesWorld(RulesParams(rules=5)))
    assert [rule.describe() in text for rule in HOUSE_STYLE] == [True] * 5 + [False] * (len(HOUSE_STYLE) - 5)


def test_each_rule_stated_raises_the_score() -> None:
    lines = perfect_prompt(WORLD).splitlines()
    scores = [mean_score(WORLD, "\n".join(lines[:count]), ROWS) for count in (1, 7, 13, 19)]
    assert scores == sorted(scores)
    assert min(later - earlier for earlier, later in pairwise(scores)) > 0.1


def test_contradictions_and_ballast_cost_score() -> None:
    perfect = perfect_prompt(WORLD)
    contradicted = (
        perfect + "\nUse commas freely.\n- Leave out any title.\nDo not put quotation marks around the answer."
    )
    ballast = perfect + "\n- Be yourself." * 40
    assert mean_score(WORLD, contradicted, ROWS) < mean_score(WORLD, perfect, ROWS) - 0.03
    assert mean_score(WORLD, ballast, ROWS) < mean_score(WORLD, perfect, ROWS) - 0.1


def test_one_reflection_mostly_raises_the_minibatch() -> None:
    rng = random.Random(4)
    better = 0
    for _ in range(60):
        minibatch = rng.sample(TRAIN, 3)
        proposed, before = propose(WORLD, SEED_PROMPT, minibatch, rng)
        better += sum(rollout(WORLD, proposed, row, rng)[1] for row in minibatch) > before
    assert better > 33


def test_greedy_search_comes_near_the_optimum() -> None:
    best = greedy_search(WORLD, proposals=60, seed=1)
    start, end = mean_score(WORLD, SEED_PROMPT, ROWS), mean_score(WORLD, best, ROWS)
    assert start + 0.75 * (expected(WORLD, perfect_prompt(WORLD), ROWS) - start) < end


def test_presets_get_harder() -> None:
    reached = {
        preset: fmean(mean_score(world, greedy_search(world, 25, seed), VAL) for seed in range(3))
        for preset, world in ((preset, RulesWorld(PRESETS[preset])) for preset in ("easy", "adversarial"))
    }
    assert len(set(PRESETS.values())) == len(PRESETS)
    assert reached["easy"] > reached["adversarial"] + 0.1


@pytest.mark.parametrize("wrong", [{"insight": 2}, {"rules": 0}, {"rules": 99}, {"forget": -1}, {"max_edits": 0}])
def test_parameters_out_of_range_are_named(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        RulesParams(**wrong)
