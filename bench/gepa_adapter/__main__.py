"""The command ``python -m bench.gepa_adapter [--seconds 60] [--repeats 3] [--threads 32] [--json FILE]``."""

from __future__ import annotations

import json
import random
from pathlib import Path

from anyio.from_thread import start_blocking_portal

import bench.gepa_adapter
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.gepa_adapter.modes import MODES, SERVER, VALIDATION, measure
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld


def main() -> None:
    parser = argument_parser(bench.gepa_adapter)
    parser.add_argument("--seconds", type=float, default=60.0, help="after which no mode begins anything new")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each mode, in a random order")
    parser.add_argument("--threads", type=int, default=32, help="of the adapter's client")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    order = [name for name in MODES for _ in range(arguments.repeats)]
    random.Random(0).shuffle(order)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in MODES}
    with start_blocking_portal() as portal:
        backend = SimBackend(RulesWorld(PRESETS["normal"]), SERVER)
        with portal.wrap_async_context_manager(serve(backend, host="127.0.0.1", port=0)) as url:
            for name in order:
                runs[name].append(measure(name, url, arguments.seconds, arguments.threads))
                print(f"{name:30} {runs[name][-1]}", flush=True)
    if arguments.json is not None:
        names = ("seconds", "repeats", "threads")
        settings = {"validation": VALIDATION, **{name: getattr(arguments, name) for name in names}}
        content = {"runs": runs, "settings": settings, "simulated": True, **environment()}
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
