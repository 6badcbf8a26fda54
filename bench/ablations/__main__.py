"""The command ``python -m bench.ablations [--quick] [--json FILE] [--figures DIR]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.ablations
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from bench.ablations.charts import draw
from bench.ablations.questions import (
    ALLOCATIONS,
    FOLLOW,
    PROFILES,
    allocation,
    allocation_figures,
    scheduling,
    speculation,
    speculation_figures,
    staleness,
)
from bench.ablations.runs import MINUTES, PRESET, Setting
from bench.ablations.saturation import saturation


def main() -> None:
    parser = argument_parser(bench.ablations)
    parser.add_argument("--quick", action="store_true", help="two seeds, fewer settings")
    parser.add_argument("--seeds", type=int, help="how many; 3 by default, 2 with --quick")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--figures", type=Path, help="draw the charts into this folder (SVG)")
    arguments = parser.parse_args()
    quick = bool(arguments.quick)
    seeds = range(arguments.seeds or (2 if quick else 3))
    saturations = [
        saturation(Setting(seed=seed, flows=128, allocation=ALLOCATIONS["ours"], concurrency=512, admission=FOLLOW))
        for seed in (seeds[:1] if quick else seeds)
    ]
    lockstep = saturation(Setting(mode="sync"))
    sections = {
        "speculation": speculation(seeds, quick),
        **{f"allocation {profile}": allocation(seeds, quick, profile) for profile in PROFILES},
        "staleness": staleness(seeds[:1] if quick else seeds),
        "scheduling": scheduling(seeds[:1] if quick else seeds),
    }
    saturated: dict[str, Spread] = {
        "saturation": spread([each.rate / each.ceiling for each in saturations]),
        "waiting_share": spread([each.waiting_share for each in saturations]),
        "stream_tokens_per_second": spread([each.rate for each in saturations]),
        "open_loop_tokens_per_second": spread([each.ceiling for each in saturations]),
        "lockstep_tokens_per_second": spread([lockstep.rate]),
    }
    print(
        f"\nsimulated: world rules, preset {PRESET}, {MINUTES:.0f} virtual minutes, {len(seeds)} seeds; median (range)"
    )
    for section in sections.values():
        section.print()
    print("\nSaturation, qwen3-8b-h100 (paper, table 1, IFBench: 963 output tokens/s in lockstep, 2,688 as a stream)")
    for name, value in saturated.items():
        print(f"  {name:34}{value.median:12.3f} ({value.low:.3f}-{value.high:.3f})")
    if arguments.figures is not None:
        draw(arguments.figures, {name: section.runs for name, section in sections.items()}, saturations[0], lockstep)
    if arguments.json is not None:
        content = {
            "saturation": saturated["saturation"].median,
            "waiting_share": saturated["waiting_share"].median,
            "speculation": speculation_figures(sections["speculation"]),
            "allocation": {profile: allocation_figures(sections[f"allocation {profile}"]) for profile in PROFILES},
            "spread": {name: value.as_json() for name, value in saturated.items()},
            "tables": {name: section.to_json() for name, section in sections.items()},
            "simulated": True,
            "settings": {"preset": PRESET, "minutes": MINUTES, "seeds": list(seeds), "quick": quick},
            **environment(),
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
