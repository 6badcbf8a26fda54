"""The parts of the bench, each with the figures that it adds to the result file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from bench._lib.stats import spread
from bench.durability.boundaries import try_all
from bench.durability.charts import draw_soak
from bench.durability.faults import RATE, run_with_faults
from bench.durability.journal import measure
from bench.durability.jumps import library, run_with_jumps
from bench.durability.kills import kill_often
from bench.durability.runs import CONCURRENCY
from bench.durability.soak import Soak, soak_real, soak_virtual

Part = Callable[[argparse.Namespace, Path], dict[str, object]]


def kills(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    counts = kill_often(folder, 11 if arguments.quick else 300, seed=1)
    figures = asdict(counts)
    return {
        **{name: figures.pop(name) for name in ("kills", "lost_responses", "lost_candidates", "repeated_updates")},
        "kill_faults": len(counts.faults),
        "kill_details": {**figures, "concurrency": CONCURRENCY},
    }


def boundaries(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    found = try_all(folder, proposals=10, every=20 if arguments.quick else 1)
    return {
        "boundaries": found.boundaries,
        "boundary_mismatches": found.mismatches,
        "rebuilt": found.rebuilt,
        "rebuilt_faults": found.rebuilt_faults,
        "boundary_details": {"events": found.events, "calls": found.calls, "said": found.messages},
    }


def faults(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    faulty = run_with_faults(folder, proposals=10 if arguments.quick else 60)
    details = {**asdict(faulty), "rate": round(faulty.rate, 3), "wanted_rate": RATE}
    return {"fault_schedule_faults": len(faulty.faults), "fault_schedule": details}


def clock(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    preloaded = library()
    if preloaded is None:
        print("clock: left out, as there is no libfaketime here (apt-get install faketime)")
        return {}
    jumped = run_with_jumps(folder, preloaded, 4 if arguments.quick else 40, seed=1)
    return {"clock_jumps": jumped.jumps, "clock_faults": len(jumped.faults), "clock_details": asdict(jumped)}


def overhead(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    bare, kept = measure(folder, repeats=1 if arguments.quick else 7)
    pairs = list(zip(bare, kept, strict=True))
    lost = spread([1 - after.calls / before.calls for before, after in pairs])
    return {
        "journal_overhead": round(lost.median, 4),
        "journal_overhead_details": {
            "lost_throughput": lost.as_json(),
            "calls_per_second": spread([each.calls for each in bare]).as_json(),
            "calls_per_second_journaled": spread([each.calls for each in kept]).as_json(),
            "loop_us_per_call": spread([after.loop - before.loop for before, after in pairs]).as_json(),
            "process_us_per_call": spread([after.process - before.process for before, after in pairs]).as_json(),
            "loop_us_per_call_without": spread([each.loop for each in bare]).as_json(),
        },
    }


def virtual(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    return _soaked("soak_virtual", soak_virtual(folder, 1 if arguments.quick else 24), arguments.charts)


def real(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    minutes = arguments.soak if arguments.soak is not None else 0.5
    return _soaked("soak_real", soak_real(folder, minutes), arguments.charts)


def _soaked(name: str, soak: Soak, charts: Path | None) -> dict[str, object]:
    if charts is not None:
        draw_soak(charts / f"{name}.svg", soak.samples)
    return {name: soak.figures()}


PARTS: Mapping[str, Part] = {
    "kills": kills,
    "boundaries": boundaries,
    "faults": faults,
    "clock": clock,
    "overhead": overhead,
    "virtual": virtual,
    "real": real,
}
