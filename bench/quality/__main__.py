"""The command ``python -m bench.quality [--quick] [--seeds 20] [--others | --without] [--json FILE]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.quality
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.history import last_change
from bench.quality.beside import others_section, without_section
from bench.quality.charts import draw_quality
from bench.quality.kept import MEASURED, KeptPairs
from bench.quality.methods import CANDIDATES, METHODS, OTHERS, WITHOUT
from bench.quality.results import MINUTES, QUICK_MINUTES, SEEDS, TUNING_SEEDS, TUNING_WORLDS, report, run_pairs
from bench.quality.runs import WORLDS
from bench.quality.section import section

QUICK_WORLDS = ("normal", "adversarial", "overlapping")


def main() -> None:
    parser = argument_parser(bench.quality)
    parser.add_argument("--quick", action="store_true", help="three worlds, three seeds, lockstep for an hour")
    parser.add_argument("--worlds", nargs="+", choices=tuple(WORLDS), metavar="WORLD", help="only these worlds")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many of the seeds, from the first")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument("--tune", action="store_true", help="the settings that were tried, on seeds kept for that")
    compared.add_argument("--others", action="store_true", help="what could be taken instead of the default, beside it")
    compared.add_argument("--without", action="store_true", help="the default with each of its parts switched off")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--figure", type=Path, help="draw best scores over time into this file (SVG)")
    parser.add_argument("--keep", type=Path, help="keep each pair in this folder, and take those that are there")
    parser.add_argument("--processes", type=int, default=1, help="runs side by side; results do not depend on it")
    arguments = parser.parse_args()
    code = environment()
    if arguments.keep is not None and code["uncommitted_changes"]:
        parser.error("--keep: pairs are known by the commit of what is measured; commit what you changed first")
    quick, tune = bool(arguments.quick), bool(arguments.tune)
    plain = QUICK_WORLDS if quick else tuple(WORLDS)
    worlds = TUNING_WORLDS if tune else tuple(arguments.worlds or plain)
    seeds = TUNING_SEEDS if tune else SEEDS[:3] if quick else SEEDS[: int(arguments.seeds)]
    minutes = QUICK_MINUTES if quick else MINUTES
    methods = CANDIDATES if tune else OTHERS if arguments.others else WITHOUT if arguments.without else METHODS
    kept = KeptPairs(arguments.keep, last_change(MEASURED))
    pairs = list(run_pairs(worlds, seeds, minutes, methods, int(arguments.processes), kept))
    content = {**report(pairs, seeds, minutes, methods, quick), **code}
    shown = others_section if arguments.others else without_section if arguments.without else section
    print("\n" + shown(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")
    if arguments.figure is not None:
        draw_quality(arguments.figure, content)


if __name__ == "__main__":
    main()
