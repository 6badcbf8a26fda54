"""The first real run: streaming GEPA on IFEval rows, driven by SmolLM2-135M on a real vLLM on this machine's CPU.

    .venv/bin/python examples/real/run.py [--minutes 10] [--data FILE] [--modes stream sync]

Makes what is missing (an environment with vLLM, about 2.3 GB; the model, 93 MB to download), serves the model on
loopback, runs each mode for the same time on the same server, and stops the server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from server import serving  # noqa: E402 - beside this script

VENV, MODEL, NAME = ROOT / ".venv-vllm", ROOT / ".models" / "smollm2-135m", "smollm2-135m"
DATA = Path(os.environ.get("FLOWEVOLVE_DATA", ROOT / ".." / "shared" / "data")) / "ifeval" / "ifeval_541.jsonl"


def main() -> int:
    arguments = parse_arguments()
    if not arguments.data.exists():
        print(f"{arguments.data}: no IFEval rows there; name a JSONL of google/IFEval's train split with --data")
        return 2
    if not (VENV / "bin" / "vllm").exists():
        subprocess.run([str(HERE / "install_vllm.sh"), str(VENV)], check=True)
    if not (MODEL / "model.safetensors").exists():
        subprocess.run([str(VENV / "bin" / "python"), str(HERE / "get_smollm2.py"), str(MODEL)], check=True)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    with serving(VENV, MODEL, NAME, arguments.port, out / "vllm.log") as url:
        print(f"vLLM serves {NAME} at {url}", flush=True)
        codes = [evolve(mode, url, arguments) for mode in arguments.modes]
    return max(codes)


def evolve(mode: str, url: str, arguments: argparse.Namespace) -> int:
    settings = {
        "algorithm.mode": mode,
        "budget.minutes": arguments.minutes,
        "llm.base_url": url,
        "task.data.path": str(arguments.data.resolve()),
    }
    command = [str(Path(sys.executable).parent / "flowevolve"), "run", str(HERE / "ifeval.toml")]
    command += ["--out", str(arguments.out / mode), "--events"]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command += [part for setting in arguments.set for part in ("--set", setting)]
    return subprocess.run(command, check=False).returncode


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each mode")
    parser.add_argument("--modes", nargs="+", choices=["stream", "sync"], default=["stream", "sync"])
    parser.add_argument("--data", type=Path, default=DATA, help="IFEval rows as JSONL")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "real")
    parser.add_argument("--port", type=int, default=8011)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting of ifeval.toml"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
