"""Arguments of a run whose strategies fail, and the errors that it tells of."""

from __future__ import annotations

from typing import Any

from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Recorder, Silent, reflect


def arguments(**given: Any) -> dict[str, Any]:
    return {
        "seed_candidate": dict(SEED),
        "trainset": list(TRAIN),
        "valset": list(VAL),
        "adapter": GEPAHashAdapter(),
        "reflection_lm": reflect,
        "max_metric_calls": 150,
        "logger": Silent(),
        "raise_on_exception": False,
        **given,
    }


def errors(recorder: Recorder) -> list[tuple[int, str, bool]]:
    told = [event for name, event in recorder.told if name == "on_error"]
    return [(event["iteration"], str(event["exception"]), event["will_continue"]) for event in told]
