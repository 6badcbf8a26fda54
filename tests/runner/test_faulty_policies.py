"""A mistake in somebody's own policy ends the run with a line that names it, and is recorded; some are refused before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.policies import Decision, Resize, Staleness, Workload
from flowevolve.journal.run_directory import read_result
from flowevolve.llm.scheduling.admission import LimitDecision, LoadSample
from flowevolve.llm.scheduling.request_queue import ByRank, GroupFacts, Key, QueuedRequest
from flowevolve.runner.overview import read_overview
from flowevolve.runner.run import run


class FailingAdmission:
    def first(self, most: int) -> int:
        return most

    def decide(self, load: LoadSample) -> LimitDecision:
        raise LookupError("no limit")


@dataclass(frozen=True)
class FailingAllocation:
    interval_seconds: float = 1.0

    def decide(self, load: Workload) -> Sequence[Resize]:
        raise LookupError("no change")


class NoChanges(FailingAllocation):
    def decide(self, load: Workload) -> Sequence[Resize]:
        return None  # type: ignore[return-value]  # the mistake


class OfNoStage(FailingAllocation):
    def decide(self, load: Workload) -> Sequence[Resize]:
        return [Resize("nowhere", 1, "a slip")]


class FailingStaleness:
    def decide(self, facts: Staleness) -> Decision:
        raise LookupError("no decision")


class NumberInPlaceOfDecision(FailingAdmission):
    def decide(self, load: LoadSample) -> LimitDecision:
        return 5  # type: ignore[return-value]  # the mistake


class NoLimit(FailingAdmission):
    def decide(self, load: LoadSample) -> LimitDecision:
        return LimitDecision(float("nan"), "unknown")  # type: ignore[arg-type]  # the mistake


class NoFirstLimit(FailingAdmission):
    def first(self, most: int) -> int:
        return None  # type: ignore[return-value]  # the mistake


class NoKeys(ByRank):
    def group_key(self, facts: GroupFacts) -> Key:
        return None  # type: ignore[return-value]  # the mistake


class TextsAsKeys(ByRank):
    def request_key(self, request: QueuedRequest, arrival: int) -> Key:
        return (str(arrival),)  # type: ignore[return-value]  # the mistake


class FailingOrder(ByRank):
    def group_key(self, facts: GroupFacts) -> Key:
        raise LookupError("no key")


@dataclass(frozen=True)
class Impatient:
    interval_seconds: float = 0.0

    def decide(self, load: Workload) -> Sequence[Resize]:
        return ()


def evolve(out: Path, **sections: object) -> fe.Result:
    settings = {"clock": "virtual", "budget": {"minutes": 5}, "llm": {"concurrency": 16}, **sections}

    async def go() -> fe.Result:
        return await run(parse_config(settings, "test"), out=out)

    return clock.run(go, clock="virtual")


def named(kind: type) -> dict[str, str]:
    return {"policy": f"{__name__}:{kind.__name__}"}


HERE = r"\(test_faulty_policies\.py, line \d+\)"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"scheduler": {"admission": named(FailingAdmission)}}, f"admission policy .*: LookupError: no limit {HERE}"),
        (
            {"scheduler": {"admission": named(NumberInPlaceOfDecision)}},
            "admission policy NumberInPlaceOfDecision returned 5; return a LimitDecision",
        ),
        ({"scheduler": {"admission": named(NoLimit)}}, r"admission policy NoLimit returned LimitDecision\(limit=nan"),
        (
            {"scheduler": {"order": named(NoKeys)}},
            "order policy NoKeys returned the key None; return a tuple of numbers",
        ),
        (
            {"scheduler": {"order": named(TextsAsKeys)}},
            r"order policy TextsAsKeys returned the key \('\d+',\); return a",
        ),
        ({"allocation": named(NoChanges)}, "allocation policy NoChanges returned None; return a list of Resize"),
        (
            {"allocation": named(OfNoStage)},
            r"allocation policy OfNoStage changes the workers of 'nowhere'; it may .* generate, ",
        ),
        ({"scheduler": {"order": named(FailingOrder)}}, f"order policy FailingOrder: LookupError: no key {HERE}"),
        ({"allocation": named(FailingAllocation)}, f"allocation policy .*: LookupError: no change {HERE}"),
        (
            {"staleness": named(FailingStaleness), "preset": "plain"},
            f"staleness policy FailingStaleness: LookupError: no decision {HERE}",
        ),
    ],
)
def test_it_is_told_in_one_line_and_the_run_has_failed(
    sections: Mapping[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(fe.EngineError, match=said) as caught:
        evolve(tmp_path, **sections)
    assert "\n" not in str(caught.value)
    overview = read_overview(tmp_path)
    assert (overview.state, overview.error) == ("failed", str(caught.value))
    assert read_result(tmp_path)["stop_reason"] == "failed"


def test_a_limit_to_begin_with_that_is_no_number_is_told_by_the_name_of_its_policy(tmp_path: Path) -> None:
    with pytest.raises(fe.EngineError, match="admission policy NoFirstLimit begins with None; return a whole number"):
        evolve(tmp_path / "run", scheduler={"admission": named(NoFirstLimit)})


def test_an_interval_without_an_end_is_refused_before_the_run_begins(tmp_path: Path) -> None:
    with pytest.raises(fe.InputError, match=r"allocation: policy '.*Impatient' asks for an interval of 0 seconds, but"):
        evolve(tmp_path / "run", allocation=named(Impatient))
