"""The command ``python -m bench.prediction [--server URL] [--quick] [--json FILE]``."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import anyio
import anyio.to_thread

import bench.prediction
from bench._lib.calibrated import check_of
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.real_server import NAME, served_model, smollm2
from bench._lib.timing_goal import GOAL
from bench.prediction.measurements import Plan, as_json, cells, learn, make, predict, summary


def main() -> None:
    parser = argument_parser(bench.prediction)
    parser.add_argument("--server", help="a base URL; by default a vLLM with SmolLM2 on this machine's cores")
    parser.add_argument("--quick", action="store_true", help="one number of requests in flight, and short runs")
    parser.add_argument("--minutes", type=float, default=2.5, help="of each run at least, after its seed is validated")
    parser.add_argument("--proposals", type=int, default=60, help="for how many of them each run has time")
    parser.add_argument("--workload", default="aime")
    parser.add_argument("--note", default="", help="what the page is to say of the circumstances, in whole sentences")
    parser.add_argument("--json", type=Path, help="write the figures here")
    asked = parser.parse_args()
    plan = (
        Plan(asked.workload, (8,), 40.0, proposals=1)
        if asked.quick
        else Plan(asked.workload, (4, 16, 32), 60 * asked.minutes, asked.proposals)
    )
    if asked.server is not None:
        content = compare(asked.server, served_model(asked.server), plan)
    else:
        content = anyio.run(_on_vllm, plan)
    content["note"] = asked.note
    print(json.dumps(content["summary"], indent=2))
    if asked.json is not None:
        asked.json.write_text(json.dumps(content, indent=1) + "\n")


def compare(url: str, model: str, plan: Plan) -> dict[str, object]:
    """Measure, predict and compare. The real runs come last, so that their predictions are made before them."""
    code = environment()
    calibration, known = learn(url, model, plan)
    predicted = predict(known, cells(known, plan), plan)
    compared = list(make(url, model, plan, predicted))
    return {
        "model": model,
        "profile": asdict(calibration.profile),
        "check": check_of(calibration),
        "exchanges": sum(exchange.answer is not None for exchange in known.exchanges),
        "plan": asdict(plan),
        "runs": [as_json(each) for each in compared],
        "goal": GOAL,
        "summary": summary(compared),
        **code,
    }


async def _on_vllm(plan: Plan) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        async with smollm2(Path(folder) / "vllm.log") as url:
            return await anyio.to_thread.run_sync(compare, url, NAME, plan)


if __name__ == "__main__":
    main()
