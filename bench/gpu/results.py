"""The content of the result file."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from itertools import chain
from statistics import median

from bench._lib.calibrated import check_of
from bench._lib.environment import environment
from bench._lib.methods.held_out import curve, worths
from bench._lib.methods.ratios import as_json, ratios, row
from bench.gpu.engine import Wanted
from bench.gpu.predictions import Before
from bench.gpu.runs import Measurements
from bench.gpu.watch import gpu_name
from flowevolve.core.model import CHARS_PER_TOKEN
from flowevolve.sim.calibration.calibrate import Calibration
from flowevolve.sim.profiles import BatchingProfile, Profile

PROCESSES = 2
"""How many processes compute what candidates are worth."""


def content(
    found: Measurements, arguments: argparse.Namespace, wanted: Wanted, before: Before | None = None
) -> dict[str, object]:
    """The content of the result file. If ``before`` has predictions from before the runs, it includes their profile."""
    about = environment()
    machine = about.pop("machine")
    assert isinstance(machine, dict)
    runs = {key: [each.figures for each in measured] for key, measured in found.runs.items()}
    texts = [] if wanted.model is not None else [at.text for each in chain(*runs.values()) for at in each.moments]
    known = worths(texts, PROCESSES)
    rows = {
        key: {
            **row(wanted.dialect, *key, runs[key]),
            "held_out": [curve(each, known) for each in runs[key]] if known else [],
            "gpu": [each.gpu for each in measured],
        }
        for key, measured in sorted(found.runs.items())
    }
    return {
        "rows": [*rows.values()],
        **as_json(ratios("gpu", rows)),
        **_server(found.server, wanted),
        **({} if before is None else asdict(before)),
        "simulated": False,
        "settings": {
            "engine": wanted.dialect,
            "model": wanted.model,
            "shape": None if wanted.model is not None else wanted.shape.name,
            "flags": list(wanted.flags),
            "minutes": arguments.minutes,
            "concurrency": arguments.concurrency,
            "repeats": arguments.repeats,
            "predicted_before": before is not None,
            "server": arguments.note,
        },
        "machine": {**machine, "gpu": gpu_name()},
        **about,
    }


def _server(found: Calibration | None, wanted: Wanted) -> dict[str, object]:
    """The profile measured on the server alone, and how far it is off on requests that it wasn't fitted to."""
    if found is None:
        return {"profile": None, "check": None}
    profile = found.profile if wanted.model is not None else in_counted_tokens(found)
    return {"profile": asdict(profile), "check": check_of(found)}


def in_counted_tokens(found: Calibration) -> Profile:
    """The profile with the cost of prompts per token as the simulator counts tokens.

    The server was measured with texts, and the tokenizer of a made-up shape makes more tokens of a text than the
    simulator counts. In the runs the server is sent as many tokens as the simulator counts
    (`bench.gpu.service.token_ids`).
    """
    if not isinstance(found.profile, BatchingProfile):
        return found.profile
    characters = max(found.measured.prefills)
    tokens = median(answer.usage.prompt_tokens for answer in found.measured.prefills[characters])
    return per_token(found.profile, tokens * CHARS_PER_TOKEN / characters)


def per_token(profile: BatchingProfile, tokens: float) -> BatchingProfile:
    """Correct a profile measured with ``tokens`` tokens of a prompt for each token that the simulator counts."""
    return replace(
        profile,
        prefill_seconds_per_token=profile.prefill_seconds_per_token / tokens,
        context_seconds_per_token=profile.context_seconds_per_token / tokens,
    )
