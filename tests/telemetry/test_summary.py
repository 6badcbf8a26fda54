"""The summary of a run says what could not be read of its replies."""

from __future__ import annotations

import io

from rich.console import Console

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from flowevolve.tasks.house_style import house_style_task
from flowevolve.telemetry.summary import summarize


def result(retries: int) -> Result:
    config = parse_config(
        {
            "clock": "virtual",
            "sim": {"preset": "misjudged"},
            "llm": {"retries": retries},
            "budget": {"proposals": 20},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=house_style_task())

    return clock.run(go, clock="virtual")


def test_a_best_candidate_that_is_no_better_than_the_seed_is_told_as_such() -> None:
    found = dict(result(retries=1).to_json())
    for seed, told in ((found["seed_score"], False), (1.0, True)):
        shown = io.StringIO()
        Console(file=shown, width=300).print(summarize({**found, "seed_score": seed}))
        assert ("nothing better than the seed was found" in shown.getvalue()) is told


def test_nothing_is_named_as_the_best_where_the_seed_was_not_scored() -> None:
    shown = io.StringIO()
    cut_off = {**result(retries=1).to_json(), "seed_score": None, "best": None, "stop_reason": "interrupted"}
    Console(file=shown, width=300).print(summarize(cut_off))
    assert "seed -, best -\n" in "\n".join(line.rstrip() for line in shown.getvalue().splitlines()) + "\n"
    assert "an interrupt after" in shown.getvalue()


def test_replies_that_could_not_be_read_are_shown_with_an_example() -> None:
    done = result(retries=1)
    replies = done.report.replies
    assert set(replies.unreadable) == {"reflection"}
    assert replies.asked_again > 0
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(done.to_json()))
    assert f"reflection: missing {replies.unreadable['reflection']['missing']}" in shown.getvalue()
    assert "no fenced block in the reply: The feedback shows" in shown.getvalue()
    assert f"for {replies.asked_again} of these replies" in shown.getvalue()
