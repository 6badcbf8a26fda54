"""The command ``python -m bench.gepa_adapter [--seconds 60] [--threads 32] [--json FILE]``."""

from __future__ import annotations

import json
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
    parser.add_argument("--threads", type=int, default=32, help="of the adapter's client")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with start_blocking_portal() as portal:
        backend = SimBackend(RulesWorld(PRESETS["normal"]), SERVER)
        with portal.wrap_async_context_manager(serve(backend, host="127.0.0.1", port=0)) as url:
            for name in MODES:
                figures[name] = measure(name, url, arguments.seconds, arguments.threads)
                print(f"{name:30} {figures[name]}", flush=True)
    if arguments.json is not None:
        settings = {"seconds": arguments.seconds, "threads": arguments.threads, "validation": VALIDATION}
        content = {"modes": figures, "settings": settings, "simulated": True, **environment()}
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
