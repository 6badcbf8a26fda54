"""The command ``python -m bench.published --data DIR [--only WORD] [--best N] [--timeout SECONDS]``."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio

import bench.published
from bench._lib.command import argument_parser
from bench.published.checking import Checked, check, summary
from bench.published.families import FAMILIES, Family, Published
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import Sandbox

PROGRAMS = Path("evolved_programs", "programs.jsonl.gz")


def main() -> None:
    parser = argument_parser(bench.published)
    parser.add_argument("--data", type=Path, required=True, help=f"the folder that has {PROGRAMS} and adrs/")
    parser.add_argument("--only", default="", help="families whose name has this in it")
    parser.add_argument("--best", type=int, help="only the best N programs of each family")
    parser.add_argument("--timeout", type=float, help="seconds for a call, instead of the paper's limit")
    parser.add_argument("--memory-mb", type=int, help="megabytes, instead of the paper's limit")
    parser.add_argument("--out", type=Path, help="a file for the figures, one line of JSON for each program")
    arguments = parser.parse_args()
    anyio.run(_run, arguments)


async def _run(arguments: argparse.Namespace) -> None:
    changes = {"timeout": arguments.timeout, "memory_mb": arguments.memory_mb}
    limits = {"preset": "paper"} | {name: value for name, value in changes.items() if value is not None}
    settings = SandboxSettings(concurrency=1, result_kb=4096, preload=("numpy", "scipy.optimize"))
    everything: list[tuple[Family, list[Checked]]] = []
    async with Sandbox(settings) as sandbox:
        for family in FAMILIES:
            if arguments.only not in family.problem:
                continue
            problem = family.make(arguments.data, limits)
            programs = sorted(read(arguments.data / PROGRAMS, family), key=lambda each: each.score, reverse=True)
            checked: list[Checked] = []
            for published in programs[: arguments.best]:
                checked.append(await check(family, problem, published, sandbox))
                print(checked[-1], flush=True)
                if arguments.out is not None:
                    with arguments.out.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(checked[-1].figures()) + "\n")
            everything.append((family, checked))
    print()
    for family, checked in everything:
        print(summary(family, checked))


def read(path: Path, family: Family) -> Iterator[Published]:
    """The programs of a family that have a score."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["problem"] == family.problem and row["score"] is not None:
                metrics: Mapping[str, float] = row["metrics"] or {}
                yield Published(row["id"], row["problem"], row["program"], row["score"], metrics)


if __name__ == "__main__":
    main()
