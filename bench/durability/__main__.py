"""Runs that last: SIGKILLs, every boundary, random faults, hours on end, and what the journal costs.

    python -m bench.durability [--quick] [--soak MINUTES] [--only PART] [--json FILE] [--charts FOLDER]

Real processes and a real clock for the kills, the faults and the soak, with the simulated server (profile
``fast-demo``, world ``rules``) in a process of its own over HTTP; the boundaries and the long run are on the virtual
clock. Each part adds its figures to FILE, so that they can be measured one after the other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from bench._lib.environment import environment
from bench._lib.stats import spread
from bench.durability.boundaries import try_all
from bench.durability.charts import draw_soak
from bench.durability.faults import RATE, endure
from bench.durability.journal import measure
from bench.durability.kills import CONCURRENCY, kill_often
from bench.durability.soak import Soak, soak_real, soak_virtual

Part = Callable[[argparse.Namespace, Path], dict[str, object]]


def kills(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    counts = kill_often(folder, 10 if arguments.quick else 200, seed=1, proposals=40)
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
        "boundary_details": {"events": found.events, "calls": found.calls, "said": found.said},
    }


def faults(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    endured = endure(folder, proposals=10 if arguments.quick else 60)
    details = {**asdict(endured), "rate": round(endured.rate, 3), "wanted_rate": RATE}
    return {"fault_schedule_faults": len(endured.faults), "fault_schedule": details}


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
    "overhead": overhead,
    "virtual": virtual,
    "real": real,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ten kills, some boundaries, a virtual hour")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="how long the run on the real clock lasts")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="measure this part; may be repeated")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    parser.add_argument("--charts", type=Path, help="write the curves of the soaks into this folder")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work in this folder and leave all in it")
    arguments = parser.parse_args()
    parts = arguments.only or [name for name in PARTS if name != "real" or arguments.soak is not None]
    for name in parts:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary) if arguments.keep is None else arguments.keep / name
            folder.mkdir(parents=True, exist_ok=True)
            figures = PARTS[name](arguments, folder)
        print(json.dumps(figures, indent=2))
        if arguments.json is not None:
            _add(arguments.json, figures)


def _add(file: Path, figures: Mapping[str, object]) -> None:
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    content = {**before, **figures, "simulated": True, **environment()}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
