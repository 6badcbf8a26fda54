"""What writes new texts: an adapter's own proposer, a strategy of reflection, or a model, which may fail."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

import anyio
import pytest
from anyio import to_thread
from gepa.core.result import GEPAResult
from gepa.proposer.reflective_mutation.reflection_lm import ReflectionProposal

from flowevolve._util.errors import FruitlessError, InputError, TaskFailedError
from flowevolve.core.model import ChatRequest
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from tests.support.gepa_dummies import SEED, HashAdapter, Silent, optimize


def test_an_adapter_without_the_attribute_of_a_proposer_is_reflected_on() -> None:
    result = optimize(HashAdapter(), seed=1)
    assert isinstance(result, GEPAResult)
    assert result.num_candidates > 1
    assert result.val_aggregate_scores[result.best_idx] > result.val_aggregate_scores[0]
    assert result.best_candidate == result.candidates[result.best_idx]
    assert GEPAResult.from_dict(result.to_dict()) == result


class Proposing(HashAdapter):
    def propose_new_texts(self, candidate: dict[str, str], dataset: Mapping[str, Any], names: list[str]) -> Any:
        assert set(dataset) == set(names)
        return {name: candidate[name] + "!" for name in names}


def test_an_adapters_own_proposer_needs_no_model() -> None:
    result = optimize(Proposing(), reflection_lm=None)
    assert any(text.endswith("!") for text in result.best_candidate.values())


def test_a_reflection_strategy_is_handed_on() -> None:
    class Counting:
        def __init__(self, count: int) -> None:
            self.count = count

        def reflect(self, candidate: dict[str, str], dataset: Any, names: list[str]) -> Any:
            return ReflectionProposal(dict.fromkeys(names, f"text {self.count}")), Counting(self.count + 1)

    result = optimize(HashAdapter(), reflection_lm=None, reflection_strategy=Counting(1), max_in_flight=1)
    texts = {text for candidate in result.candidates for text in candidate.values()} - set(SEED.values())
    assert len(texts) > 1


def test_a_proposer_may_only_name_what_there_is() -> None:
    with pytest.raises(InputError, match="custom_candidate_proposer returned texts for"):
        optimize(HashAdapter(), custom_candidate_proposer=lambda *_: {"other": "x"})


def test_a_proposer_that_returns_no_texts_is_named() -> None:
    with pytest.raises(InputError, match=r"custom_candidate_proposer returned 3 \(int\) for 'first'; return texts"):
        optimize(HashAdapter(), reflection_lm=None, custom_candidate_proposer=lambda *_: {"first": 3})


class Lengthy:
    """Writes a text that is too long for the limit of tokens, and a short one when it is asked again after so many."""

    def __init__(self, cut: int = 0) -> None:
        self.asked: list[int] = []
        self._cut = cut

    def reply(self, request: ChatRequest, rng: Random) -> str:
        self.asked.append(len(request.messages))
        briefly = len(request.messages) > 1 and len(self.asked) > self._cut
        return f"```\nAnswer {'briefly' if briefly else 'at length, ' * 90}.\n```"


def optimize_with(world: Lengthy, metric_calls: int, logger: Silent | None = None) -> Any:
    """With a model whose replies are cut off at 60 tokens."""

    async def go() -> Any:
        async with serve(SimBackend(world, PROFILES["instant"], model="m")) as url:
            settings = {"base_url": url, "max_tokens": 60}
            given = {"reflection_lm": "m", "reflection_lm_kwargs": settings, "max_metric_calls": metric_calls}
            return await to_thread.run_sync(partial(optimize, HashAdapter(), logger=logger or Silent(), **given))

    return anyio.run(go)


def test_a_reflection_that_the_limit_of_tokens_cut_off_is_asked_for_again() -> None:
    world = Lengthy()
    texts = {text for candidate in optimize_with(world, 40).candidates for text in candidate.values()}
    assert not any("at length" in text for text in texts)
    assert 3 in world.asked


def test_where_that_is_cut_off_too_it_is_no_failure_of_the_adapter() -> None:
    world, logger = Lengthy(cut=30), Silent()
    assert optimize_with(world, 200, logger).candidates
    assert len(world.asked) > 30
    assert any("a reply could not be read: it breaks off" in line for line in logger.lines)


def test_where_all_are_cut_off_the_error_says_what_to_raise() -> None:
    with pytest.raises(FruitlessError, match=r"Replies in role 'reflection' break off.*max_tokens"):
        optimize_with(Lengthy(cut=10_000), 400)


@pytest.mark.parametrize("reply", ["", " \n", "```\n\n```"])
def test_an_empty_reply_is_no_text(reply: str) -> None:
    adapter = HashAdapter()
    with pytest.raises(FruitlessError, match=r"the new text in the reply is empty"):
        optimize(adapter, reflection_lm=lambda prompt: reply, max_metric_calls=1000)
    assert {candidate for _, candidate, _ in adapter.calls} == {tuple(sorted(SEED.items()))}


def test_where_gepa_is_followed_it_is_one_and_told() -> None:
    logger = Silent()
    adapter = HashAdapter()
    optimize(adapter, reflection_lm=lambda prompt: "", max_in_flight=1, logger=logger)
    assert any(dict(candidate)["first"] == "" for _, candidate, _ in adapter.calls)
    assert "flowevolve: the reply for first is empty, and an empty text is tried, as gepa does" in logger.lines


def test_a_model_that_always_fails_ends_the_run() -> None:
    calls = 0

    def broken(prompt: str) -> str:
        nonlocal calls
        calls += 1
        raise ConnectionError("nobody there")

    said = "reflection_lm failed with ConnectionError: nobody there, as on each of the first 10 calls"
    with pytest.raises(TaskFailedError, match=f"^{said}$"):
        optimize(HashAdapter(), reflection_lm=broken, max_metric_calls=10_000, max_in_flight=1)
    assert calls == 10


def test_reflection_that_always_fails_ends_the_run() -> None:
    class Untraced(HashAdapter):
        def make_reflective_dataset(self, *_: Any) -> Any:
            raise KeyError("trace")

    logger = Silent()
    with pytest.raises(
        TaskFailedError, match="reflection failed in each of the first 10 attempts; the last time: KeyError"
    ):
        optimize(Untraced(), max_metric_calls=10_000, logger=logger)
    assert any("KeyError" in line for line in logger.lines)
