"""Real runs on this machine's CPU, driven by SmolLM2-135M on a real vLLM: GEPA on IFEval rows, ACE on Formula rows.

    .venv/bin/python examples/real/run.py [ifeval | formula] [--minutes 10] [--data FOLDER] [--modes stream sync]

Makes what is missing (an environment with vLLM, about 2.3 GB; the model, 93 MB to download), serves the model on
loopback, runs each mode for the same time on the same server, and stops the server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import anyio

from flowevolve.vllm.serving import serve_vllm
from flowevolve.vllm.settings import VLLMSettings

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
VENV, MODEL, NAME = ROOT / ".venv-vllm", ROOT / ".models" / "smollm2-135m", "smollm2-135m"
DATA = Path(os.environ.get("FLOWEVOLVE_DATA", ROOT / ".." / "shared" / "data"))
ROWS = {
    "ifeval": {"path": "ifeval/ifeval_541.jsonl"},
    "formula": {"path": "xbrl_formula/xbrl_formula_ace_train.jsonl.gz"},
}
"""The file that each example reads, below the data folder."""


def main() -> int:
    arguments = parse_arguments()
    for name in ROWS[arguments.example].values():
        if not (arguments.data / name).exists():
            print(f"{arguments.data / name}: no such rows; name the folder that has them with --data")
            return 2
    if not (VENV / "bin" / "vllm").exists():
        subprocess.run([str(ROOT / "tools" / "install_vllm.sh"), str(VENV)], check=True)
    if not (MODEL / "model.safetensors").exists():
        subprocess.run([str(VENV / "bin" / "python"), str(HERE / "get_smollm2.py"), str(MODEL)], check=True)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    return anyio.run(serve_and_evolve, arguments)


async def serve_and_evolve(arguments: argparse.Namespace) -> int:
    settings = VLLMSettings(
        executable=str(VENV),
        model=str(MODEL),
        device="cpu",
        port=arguments.port,
        # Compiling takes longer than a short run gains by it, and past 32 requests two cores gain nothing.
        flags=("--dtype=bfloat16", "--max-model-len=4096", "--max-num-seqs=32", "--enforce-eager"),
        # One process, because two cores leave nothing for a second one.
        environment={"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
    )
    log = arguments.out / "vllm.log"
    async with serve_vllm(NAME, settings, log=log, tell=lambda news: print(news.detail, flush=True)) as urls:
        print(f"vLLM serves {NAME} at {urls[0]}", flush=True)
        return max([await evolve(mode, urls[0], arguments) for mode in arguments.modes])


async def evolve(mode: str, url: str, arguments: argparse.Namespace) -> int:
    settings = {
        "algorithm.mode": mode,
        "budget.minutes": arguments.minutes,
        "llm.base_url": url,
        **{f"task.data.{key}": str((arguments.data / name).resolve()) for key, name in ROWS[arguments.example].items()},
    }
    command = [str(Path(sys.executable).parent / "flowevolve"), "run", str(HERE / f"{arguments.example}.toml")]
    command += ["--out", str(arguments.out / mode), "--events"]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command += [part for setting in arguments.set for part in ("--set", setting)]
    return (await anyio.run_process(command, stdout=None, stderr=None, check=False)).returncode


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", nargs="?", choices=list(ROWS), default="ifeval")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each mode")
    parser.add_argument("--modes", nargs="+", choices=["stream", "sync"], default=["stream", "sync"])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the rows")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "real")
    parser.add_argument("--port", type=int, default=8011)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting of the configuration"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
