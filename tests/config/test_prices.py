"""Prices come from the configuration and a file, and a budget in dollars needs one for every model."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.prices import known_prices, price_table
from flowevolve.config.run import Config, parse_config
from flowevolve.core.events import Event
from flowevolve.llm.client.accounting import Price
from flowevolve.runner.run import Watchers, run

FILE = """
[small]
input = 1
output = 4
["big-1.5"]
input = 2
cached_input = 0.5
output = 8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(FILE)
    return path


def config(file: Path | None = None, **llm: object) -> Config:
    named = {} if file is None else {"prices_file": str(file)}
    return parse_config({"budget": {"dollars": 1}, "llm": {**named, **llm}}, "test")


def test_prices_of_the_configuration_count_before_those_of_the_file(file: Path) -> None:
    table = price_table(config(file, prices={"small": {"input": 3, "output": 3}}), ["small", "big-1.5"])
    assert table == {"small": Price(3, 3, 3), "big-1.5": Price(2, 0.5, 8)}


def test_every_model_without_a_price_is_named(file: Path) -> None:
    says = r"budget\.dollars needs the price of 'a', 'b\"c': add \[llm\.prices\.\"a\"\], \[llm\.prices\.\"b\\\"c\"\].*prices_file"
    with pytest.raises(InputError, match=says):
        price_table(config(file), ["a", "small", 'b"c', "a"])


def test_without_a_budget_in_dollars_prices_may_be_unknown() -> None:
    assert price_table(parse_config({"budget": {"proposals": 1}}, "test"), ["a"]) == {}


def test_what_only_reports_prices_does_without_a_file_that_has_gone(file: Path) -> None:
    priced = config(file)
    assert known_prices(priced) == price_table(priced, ())
    file.unlink()
    assert known_prices(priced) == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[small\n", r"prices\.toml: not valid TOML"),
        ("[small]\ninput = 1\n", r"prices\.toml: small\.output is missing"),
        ("[small]\ninput = 1\noutput = -1\n", r"small\.output is -1, but has to be at least 0"),
        (
            "[small]\ninput = 1\noutput = 1\ncashed_input = 1\n",
            r"cashed_input: unknown key; did you mean 'cached_input'",
        ),
        ("[big-1.5]\ninput = 1\noutput = 1\n", r"a name with dots needs quotes"),
    ],
)
def test_a_file_that_is_wrong_is_named(file: Path, content: str, says: str) -> None:
    file.write_text(content)
    with pytest.raises(InputError, match=says):
        price_table(config(file), [])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: the prices can't be read: No such file.*llm\.prices_file"):
        price_table(config(tmp_path / "none.toml"), [])


def test_a_budget_is_reached_though_the_server_does_not_say_what_calls_take(tmp_path: Path) -> None:
    table: dict[str, object] = {
        "clock": "virtual",
        "budget": {"dollars": 0.5, "rollouts": 5000},
        "llm": {"prices": {"simulated": {"input": 2.5, "output": 10}}},
        "sim": {"faults": {"rate": 1, "kinds": ["no_usage"]}},
    }
    heard: list[Event] = []
    watchers = Watchers(events=(heard.append,))
    result = clock.run(partial(run, parse_config(table, "test"), watchers=watchers), clock="virtual")
    told = [event.data for event in heard if event.kind == "usage.estimated"]
    assert result.report.stop_reason == "dollars"
    assert result.llm.estimated == result.llm.requests
    assert [event["model"] for event in told] == ["simulated"]
