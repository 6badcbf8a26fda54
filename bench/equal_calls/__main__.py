"""The command ``python -m bench.equal_calls [--seeds 5] [--calls 900] [--fewer 150 300] [--json FILE]``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import bench.equal_calls
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.equal_calls.runs import SEEDS, compare
from bench.equal_calls.section import section
from bench.equal_calls.world import WORLDS


def main() -> None:
    parser = argument_parser(bench.equal_calls)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=900, help="metric calls of each run")
    parser.add_argument("--fewer", type=int, nargs="*", default=[150, 300], help="the same once more, with so many")
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    compare("plain", 10_000, 60)  # the first run also loads modules, so it is not counted
    content = {
        "pairs": _pairs(arguments.worlds, arguments.seeds, arguments.calls),
        "fewer": {str(calls): _pairs(arguments.worlds, arguments.seeds, calls) for calls in arguments.fewer},
        "settings": {"seeds": arguments.seeds, "calls": arguments.calls},
        "worlds": {name: WORLDS[name].about for name in arguments.worlds},
        "simulated": True,
        **environment(),
    }
    print("\n" + section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


def _pairs(worlds: Sequence[str], seeds: int, calls: int) -> list[dict[str, object]]:
    pairs = []
    for world in worlds:
        for seed in SEEDS[:seeds]:
            pair = compare(world, seed, calls)
            pairs.append(pair.as_json())
            print(f"{calls} calls, {world}, seed {seed}: gepa {pair.gepa}, ours {pair.ours}", flush=True)
    return pairs


if __name__ == "__main__":
    main()
