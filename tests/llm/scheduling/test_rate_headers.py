"""What answers say of rate limits."""

import pytest
from hypothesis import given, strategies as st

from flowevolve.llm.scheduling.rate_headers import Allowance, allowances


def openai(kind="requests", limit="100", remaining="40", reset="30s"):
    return {
        f"x-ratelimit-limit-{kind}": limit,
        f"x-ratelimit-remaining-{kind}": remaining,
        f"x-ratelimit-reset-{kind}": reset,
    }


def anthropic(kind="requests", limit="50", remaining="20", reset="2025-01-01T00:00:30Z"):
    return {
        f"anthropic-ratelimit-{kind}-limit": limit,
        f"anthropic-ratelimit-{kind}-remaining": remaining,
        f"anthropic-ratelimit-{kind}-reset": reset,
        "date": "Wed, 01 Jan 2025 00:00:00 GMT",
    }


def test_openais_names_for_requests_and_tokens() -> None:
    headers = openai() | openai("tokens", "30000", "29000", "2s")
    assert allowances(headers) == {"requests": Allowance(100, 40, 30), "tokens": Allowance(30000, 29000, 2)}


def test_anthropics_names_go_by_the_servers_clock() -> None:
    assert allowances(anthropic() | anthropic("tokens")) == {
        "requests": Allowance(50, 20, 30),
        "tokens": Allowance(50, 20, 30),
    }


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [("1s", 1), ("17ms", 0.017), ("6m0s", 360), ("2m59.56s", 179.56), ("1h2m3s", 3723), ("1d", 86400), ("30", 30)],
)
def test_durations(reset, seconds) -> None:
    assert allowances(openai(reset=reset))["requests"].reset_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        openai(limit="many"),
        openai(limit="0"),
        openai(limit="nan"),
        openai(remaining="inf"),
        openai(reset="soon"),
        openai(reset="1s2"),
        openai(reset="1" * 5000 + "x"),
        anthropic(reset="tomorrow"),
        anthropic(reset="2025-01-01T00:00:30"),
        anthropic() | {"date": ""},
        {"x-ratelimit-limit-requests": "100"},
    ],
)
def test_what_cannot_be_read_is_left_out(headers) -> None:
    assert allowances(headers) == {}


@given(st.text(), st.text(), st.text())
def test_nothing_a_server_says_is_an_error(limit, remaining, reset) -> None:
    allowances(openai("tokens", limit, remaining, reset) | anthropic("requests", limit, remaining, reset))


def test_the_rate_is_what_was_used_over_the_time_until_it_is_back() -> None:
    assert Allowance(100, 40, 30).per_second == 2
    assert Allowance(100, 100, 0).per_second is None
    assert Allowance(100, 40, 0).per_second is None
