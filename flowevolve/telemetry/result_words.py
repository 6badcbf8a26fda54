"""Phrases about a result that are used in more than one place, made from its ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowevolve._util.words import counted
from flowevolve.core.discard_reasons import PERFECT
from flowevolve.core.stop_reasons import TIME, UNPRODUCTIVE, StopReason
from flowevolve.telemetry.failed_rollouts import FailedRollouts


def stopped_by(reason: str, perfect: int, after: str = "") -> str:
    """Why a run stopped, in words; ``perfect`` is how many minibatches left nothing to improve."""
    ending = f"{StopReason(reason).said}{after}"
    if reason != UNPRODUCTIVE or not perfect:
        return ending
    return f"{ending}: there was nothing left to improve in {perfect:,} minibatches"


def reached_before(result: Mapping[str, Any]) -> str:
    """Words for a resumed run that had reached before what ended it; empty for any other."""
    return ", reached before the run was resumed" if result.get("reached_before") else ""


def too_little(result: Mapping[str, Any]) -> str:
    """Words for a run whose budget was used up before the first proposal; empty for any other."""
    reason = StopReason(result["stop_reason"])
    if result["proposals"] or not reason.is_of_budget or perfect_minibatches(result) or unanswered(result):
        return ""
    what = "time" if reason == TIME else reason
    unless = ", unless its open work never ends" if cut_off(result) else ""
    return (
        f"nothing was proposed before the budget was used up: give more {what} (flowevolve.plan says how much){unless}"
    )


def cut_off(result: Mapping[str, Any]) -> str:
    """Words for a run that has accepted nothing and was cut off with work still open, which name the stages that it was
    at; empty for any other, and for one that has failed or whose calls were not answered.
    """
    held_at = result.get("held_at")
    if not held_at or result.get("error") or result["accepted"] or unanswered(result):
        return ""
    places = ", ".join(f"{counted(items, 'item')} at {stage}" for stage, items in held_at.items())
    return f"when the run was cut off, work was still open: {places}"


def no_better(seed: float | None, best: float | None, *, as_seed: bool) -> str:
    """Words for a run that found nothing better than the seed; empty for any other. ``as_seed`` says whether the best
    candidate has the same texts as the seed.
    """
    if seed is None or best is None or (best > seed and not as_seed):
        return ""
    again = ", whose own texts were scored again" if as_seed and best != seed else ""
    return f": nothing better than the seed was found{again}"


def perfect_minibatches(result: Mapping[str, Any]) -> int:
    return sum(stage.get("discard_reasons", {}).get(PERFECT, 0) for stage in result["stages"].values())


def how_many_failed(result: Mapping[str, Any]) -> str:
    """Words for a run in which rollouts failed; empty for any other."""
    return FailedRollouts.read(result.get("failed_rollouts")).said(result["rollouts"])


def tested_on(examples: int, failed: int) -> str:
    """On how many examples of the test split seed and best were scored, and how many of these rollouts failed."""
    rollouts = "1 rollout failed and has" if failed == 1 else f"{failed} rollouts failed and have"
    return f"on {counted(examples, 'test example')}" + (f"; {rollouts} the worst score" if failed else "")


def changed_nothing(replies: int) -> str:
    """Words after the number of proposals for replies that were none, as they changed nothing."""
    return f"; {counted(replies, 'reply', 'replies')} changed nothing" if replies else ""


def unanswered(result: Mapping[str, Any]) -> str:
    """Words for a run that called its models and never got an answer; empty for any other."""
    llm = result["llm"]
    asked = llm["requests"] or llm.get("cancelled") or llm["mean_in_flight"]
    if not asked or llm["requests"] > llm["failed"] or llm.get("cached_calls"):
        return ""
    return "no call of a model was answered"
