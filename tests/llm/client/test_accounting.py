from functools import reduce
from operator import add

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.model import Usage
from flowevolve.llm.client.accounting import Account, Price, Totals

PRICES = {"big": Price(input=2.0, cached_input=0.5, output=8.0), "free": Price(0, 0, 0)}

counts = st.integers(0, 1000)
usages = st.builds(lambda prompt, cached, out: Usage(prompt, out, min(prompt, cached)), counts, counts, counts)
calls = st.builds(
    Totals,
    requests=st.just(1),
    failed=st.integers(0, 1),
    retries=st.integers(0, 5),
    usage=usages,
    latency_seconds=st.integers(0, 1000),
    dollars=st.none() | st.integers(0, 100),
)
entries = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["task", "reflection"]),
        "model": st.sampled_from(["big", "small"]),
        "stage": st.sampled_from(["generate", "propose", "evaluate"]),
        "call": calls,
    }
)


def test_a_price_tells_cached_tokens_from_fresh_ones() -> None:
    account = Account(PRICES)
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=500_000, cached_tokens=400_000)
    assert account.cost("big", usage) == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.5 * 8.0)
    assert account.cost("free", usage) == 0
    assert account.cost("unheard of", usage) is None


def test_a_prompt_is_never_cached_more_than_whole() -> None:
    assert Price(2.5, 0.25, 10).cost(Usage(100, 0, 900)) == pytest.approx(25e-6)


@given(st.lists(entries, max_size=30))
def test_the_sums_of_models_add_up(made) -> None:
    account = Account({})
    for entry in made:
        account.add(**entry)
    total = reduce(add, [entry["call"] for entry in made], Totals())
    assert account.totals() == total
    assert reduce(add, account.by_model().values(), Totals()) == total
    assert account.by_model() == {
        model: reduce(add, [entry["call"] for entry in made if entry["model"] == model])
        for model in {entry["model"] for entry in made}
    }


def test_one_unknown_price_makes_the_sum_unknown_but_not_the_known_part() -> None:
    account = Account(PRICES)
    for model in ("free", "unheard of"):
        call = Totals(requests=1, dollars=account.cost(model, Usage(10, 10)))
        account.add(role="task", model=model, stage="generate", call=call)
    assert account.totals().dollars is None
    assert account.by_model()["free"].dollars == 0
