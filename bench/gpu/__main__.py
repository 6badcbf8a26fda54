"""The command.

python -m bench.gpu [--engine vllm|transformers] [--environment FOLDER] [--model NAME] [--json FILE] [-- FLAGS]
python -m bench.gpu --predict FILE
python -m bench.gpu --predicted FILE [...]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

import bench.gpu
from bench._lib.command import argument_parser
from bench._lib.methods.process import CEILING, METHODS
from bench._lib.methods.workloads import WORKLOADS
from bench._lib.paths import ROOT
from bench.gpu.engine import SHAPE, Wanted, make_shape
from bench.gpu.predictions import Before, add_predictions, read_before
from bench.gpu.results import content
from bench.gpu.runs import COMPARED, Measurements, measure
from flowevolve._util.errors import FlowevolveError


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argument_parser(bench.gpu)
    parser.add_argument("--engine", choices=["vllm", "transformers"], default="vllm")
    parser.add_argument("--environment", default="vllm", help="the folder of the environment the server is in")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--model", help="trained weights: a folder, or a name that the server can load")
    what.add_argument("--shape", type=Path, default=SHAPE, help="a folder with another model's configuration")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=["ifbench", "hover"])
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, CEILING], default=list(COMPARED))
    parser.add_argument("--minutes", type=float, default=5.0, help="for each method, once its seed is validated")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=256, help="requests in flight at most, for every method")
    parser.add_argument("--log", type=Path, default=ROOT / "runs" / "gpu-server.log", help="what the server says")
    parser.add_argument("--json", type=Path, help="write the figures here, anew after each run")
    parser.add_argument("--note", default="", help="what the page is to say of the server, in whole sentences")
    parser.add_argument(
        "--no-calibration", dest="calibration", action="store_false", help="do not measure the server alone first"
    )
    parser.add_argument(
        "--predicted",
        type=Path,
        help="predictions that --predict made before the runs, from what was measured of such a server; it is not "
        "measured again then",
    )
    parser.add_argument("--predict", type=Path, help="predict the runs of this result, on any machine; makes none")
    parser.add_argument("flags", nargs="*", help="after --: flags of the server")
    return parser.parse_args(arguments)


def wanted_of(arguments: argparse.Namespace) -> Wanted:
    return Wanted(
        arguments.engine,
        arguments.environment,
        arguments.model,
        arguments.shape,
        tuple(arguments.flags),
        arguments.log,
    )


def main(given: Sequence[str]) -> int:
    arguments = parse(given)
    try:
        if arguments.predict is not None:
            add_predictions(arguments.predict)
        else:
            before = None if arguments.predicted is None else read_before(arguments.predicted)
            arguments.calibration &= before is None
            _measure(arguments, wanted_of(arguments), before)
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _measure(arguments: argparse.Namespace, wanted: Wanted, before: Before | None) -> None:
    def keep(found: Measurements) -> None:
        if arguments.json is not None:
            made = content(found, arguments, wanted, before)
            arguments.json.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")

    arguments.log.parent.mkdir(parents=True, exist_ok=True)
    make_shape(wanted)
    found = anyio.run(measure, arguments, wanted, keep)
    print(json.dumps(content(found, arguments, wanted, before)["ratios"], indent=2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
