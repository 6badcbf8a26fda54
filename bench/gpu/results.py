"""The content of the result file."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from bench._lib.environment import environment
from bench._lib.methods.ratios import as_json, ratios, row
from bench.gpu.engine import Wanted
from bench.gpu.runs import Measurements
from bench.gpu.watch import gpu_name
from flowevolve.sim.calibration.calibrate import Calibration


def content(found: Measurements, arguments: argparse.Namespace, wanted: Wanted) -> dict[str, object]:
    """The content of the result file."""
    about = environment()
    machine = about.pop("machine")
    assert isinstance(machine, dict)
    runs = {key: [each.figures for each in measured] for key, measured in found.runs.items()}
    return {
        "rows": [
            {**row(wanted.dialect, *key, runs[key]), "gpu": [each.gpu for each in measured]}
            for key, measured in sorted(found.runs.items())
        ],
        **as_json(ratios("gpu", runs)),
        **_server(found.server),
        "simulated": False,
        "settings": {
            "engine": wanted.dialect,
            "model": wanted.model,
            "shape": None if wanted.model is not None else wanted.shape.name,
            "flags": list(wanted.flags),
            "minutes": arguments.minutes,
            "concurrency": arguments.concurrency,
            "repeats": arguments.repeats,
            "server": arguments.note,
        },
        "machine": {**machine, "gpu": gpu_name()},
        **about,
    }


def _server(found: Calibration | None) -> dict[str, object]:
    """What was measured of the server alone, and how far that is off on requests that nothing was fitted to."""
    check = None if found is None or found.check is None else {**asdict(found.check), "error": found.check.error}
    return {"profile": None if found is None else asdict(found.profile), "check": check}
