"""Record the event logs of all algorithms on the simulated backend, to prove that a change of the code changes nothing.

    python tools/record_events.py OUT                    run all and leave a recording in the folder OUT
    python tools/record_events.py OUT --only levi        a part: the runs whose names begin with this
    python tools/record_events.py OUT --summary          also print what kinds of events each run has, and how many
    python tools/record_events.py OUT --compare BEFORE   then compare with an earlier recording

The exit code is 1 if a run failed, if one differs from the earlier recording, or if something does not occur that the
settings say is to be recorded.

Every algorithm that ships is run in both modes, stream and lockstep, with the seeds 0, 1 and 2, on the virtual clock.
The settings stand in ``record_events.toml`` beside this file; seeds differ in settings, too, so that more of the code
is recorded. Of each run there are three files: ``ALGORITHM-MODE-SEED.events.jsonl``, the run's log; ``….result.json``,
its result; and ``….calls.sha256``, a digest of its LLM calls with their prompts and replies.

The running time of an evolved program is measured, so it is set to 0 wherever a file names it; all else is kept byte
for byte. Problems whose scores are measured, and archives that sort programs by their running time, can't be recorded.
Programs run in the sandbox, which needs bubblewrap (``make sandbox``).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import runpy
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import product, zip_longest
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import tomli_w

Table = dict[str, object]

MODES = {"stream": "stream", "lockstep": "sync"}
"""The names of the modes in a recording, with those in a configuration."""
SEEDS = (0, 1, 2)
PARTS = ("events.jsonl", "result.json", "calls.sha256")
MEASURED = re.compile(r'("metrics": ?\{[^{}]*?"seconds": ?)[0-9.e-]+')
"""The running time of a program among the figures of its problem."""
NEWER = re.compile(r'\n *"cut_while_thinking": 0,|"thinking": null, ')
"""Entries that older recordings lack. If they say nothing they are left out, so that those still compare."""
ROOT = Path(__file__).resolve().parents[1]
"""The checkout whose package is recorded, whatever else is installed."""
SETTINGS: Table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""What is run, and what has to occur in it."""
SHOWN = 150
"""How many characters of a differing line are printed on either side of the first difference."""


@dataclass(frozen=True)
class Run:
    """One run of a recording."""

    algorithm: str
    mode: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.algorithm}-{self.mode}-{self.seed}"


def main() -> int:
    """Record, and compare if asked to. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--only", default="", metavar="NAME", help="the runs whose names begin with this")
    parser.add_argument("--compare", type=Path, metavar="BEFORE", help="a folder with an earlier recording")
    parser.add_argument("--summary", action="store_true", help="print the kinds of events of each run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    options = parser.parse_args()
    runs = [run for run in all_runs() if run.name.startswith(options.only)]
    if not runs:
        parser.error(f"--only {options.only}: no run's name begins with this")
    options.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        lines = list(filter(None, pool.map(partial(attempt, out=options.out), runs)))
    if lines:
        sys.exit("\n".join(lines))
    counts = {run: occurrences(options.out, run) for run in runs}
    if options.summary:
        for run in runs:
            print(f"{run.name}: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts[run].items())))
    lines = absent(counts)
    if options.compare is not None:
        lines += [line for run in runs for line in differences(options.compare, options.out, run)]
    print("\n".join([*lines, f"{len(runs)} runs recorded" + ("" if lines else ", nothing to complain of")]))
    return 1 if lines else 0


def all_runs() -> list[Run]:
    """Every algorithm there is, in both modes, with all seeds."""
    listed = flowevolve("list", "algorithms").split()
    return [Run(*each) for each in product(listed, MODES, SEEDS)]


def flowevolve(*arguments: str) -> str:
    """What a command prints. It runs in this process, because starting one for each would take most of the time.

    Raises:
        RuntimeError: if it fails.
    """
    printed = StringIO()
    try:
        with (
            redirect_stdout(printed),
            redirect_stderr(printed),
            patch.object(sys, "argv", ["flowevolve", *arguments]),
            patch.object(sys, "path", [str(ROOT), *sys.path]),
        ):
            runpy.run_module("flowevolve", run_name="__main__")
    except SystemExit as done:
        if done.code:
            raise RuntimeError(
                f"flowevolve {' '.join(arguments)}: exit code {done.code}\n{printed.getvalue()}"
            ) from None
    return printed.getvalue()


def attempt(run: Run, out: Path) -> str | None:
    """Carry out a run. Returns what went wrong, if anything did."""
    try:
        record(run, out)
    except RuntimeError as error:
        return f"{run.name}: {error}"
    return None


def record(run: Run, out: Path) -> None:
    """Carry out a run, and leave its files in ``out``."""
    out = out.absolute()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_labelled_texts()
        for name, settings in configurations(run).items():
            Path(f"{name}.toml").write_text(tomli_w.dumps(settings), encoding="utf-8")
            flowevolve("run", f"{name}.toml", "--events", "--out", name)
        if is_resumed(run):
            flowevolve("resume", "recorded", "--set", "budget.seconds=1000000")
        flowevolve("export", "recorded", "--out", "tables")
        texts = [Path("recorded", name).read_text(encoding="utf-8") for name in ("events.jsonl", "result.json")]
        calls = NEWER.sub("", Path("tables/calls.jsonl").read_text(encoding="utf-8"))
    digest = hashlib.sha256(calls.encode()).hexdigest()
    logs = [NEWER.sub("", MEASURED.sub(r"\g<1>0", text)) for text in texts]
    for part, text in zip(PARTS, [*logs, f"{digest}\n"], strict=True):
        (out / f"{run.name}.{part}").write_text(text, encoding="utf-8")


def write_labelled_texts() -> None:
    """Write the texts that Meta-Harness's harnesses classify into the current folder."""
    words = {"fruit": "apple pear plum fig", "tool": "saw file drill clamp", "metal": "iron tin zinc lead"}
    for place, name in enumerate(("short", "long")):
        rng = random.Random(place)
        labels = [rng.choice(list(words)) for _ in range(60)]
        texts = [" ".join(rng.choices(words[label].split(), k=2 + 6 * place)) for label in labels]
        rows = [json.dumps({"question": text, "answer": label}) for text, label in zip(texts, labels, strict=True)]
        Path(f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")


def configurations(run: Run) -> dict[str, Table]:
    """The configuration of a run as ``recorded``, preceded by that of the run whose experience it finds, if there is
    one.
    """
    own = table(SETTINGS, run.algorithm)
    chosen: Table = {"seed": run.seed, "algorithm": {"name": run.algorithm, "mode": MODES[run.mode]}}
    settings: Table = {}
    for part in (table(SETTINGS, "common"), table(own, "all"), table(own, f"seed_{run.seed}"), chosen):
        settings = merged(settings, part)
    before = {"before": merged(settings, table(own, "before"))} if "before" in own else {}
    return {**before, "recorded": settings}


def is_resumed(run: Run) -> bool:
    """Whether a run is stopped midway and resumed."""
    own = table(table(SETTINGS, run.algorithm), f"seed_{run.seed}")
    return any("resumed" in table(SETTINGS, name) for name in names(own, "also"))


def table(tables: Table, name: str) -> Table:
    """The table of this name; empty if there is none."""
    found = tables.get(name, {})
    assert isinstance(found, dict), f"{name} is no table"
    return found


def names(settings: Table, key: str) -> list[str]:
    """The names that a key lists; none if there is no such key."""
    found = settings.get(key, [])
    assert isinstance(found, list)
    return found


def merged(settings: Table, more: Table) -> Table:
    """The settings, overridden by the tables that ``more`` names in ``also``, and then by ``more`` itself."""
    for name in names(more, "also"):
        settings = merged(settings, table(SETTINGS, name))
    new = {key: value for key, value in more.items() if key not in ("also", "resumed")}
    inner = {key: merged(table(settings, key), value) for key, value in new.items() if isinstance(value, dict)}
    return {**settings, **new, **inner}


def occurrences(out: Path, run: Run) -> Counter[str]:
    """How often each kind of event and each operator occur in a run, and the counts of its result that are above 0."""
    events, result = ((out / f"{run.name}.{part}").read_text(encoding="utf-8") for part in PARTS[:2])
    logged = [json.loads(line) for line in events.split("\n") if line]
    counts = Counter(str(event["kind"]) for event in logged)
    counts.update(f"operator.{event['operator']}" for event in logged if event["kind"] == "candidate.proposed")
    for section in ("staleness", "speculation", "racing", "llm"):
        for name, count in json.loads(result)[section].items():
            counts[f"{section}.{name}"] = count if isinstance(count, int) else 0
    return +counts


def absent(counts: Mapping[Run, Counter[str]]) -> list[str]:
    """What is expected of an algorithm and occurs in none of its runs. Algorithms whose runs are not all there are
    skipped.
    """
    lines = []
    for algorithm in dict.fromkeys(run.algorithm for run in counts):
        of_it = [count for run, count in counts.items() if run.algorithm == algorithm]
        expected = [kind for name in ("every", algorithm) for kind in names(table(SETTINGS, name), "expected")]
        seen = set().union(*of_it)
        if len(of_it) == len(MODES) * len(SEEDS):
            lines += [f"{algorithm}: {kind} does not occur" for kind in expected if kind not in seen]
    return lines


def differences(before: Path, after: Path, run: Run) -> list[str]:
    """For each file of a run that differs, the first line that does, before and after."""
    lines = []
    for part in PARTS:
        old, new = (read_lines(folder / f"{run.name}.{part}") for folder in (before, after))
        pairs = enumerate(zip_longest(old, new, fillvalue="(no such line)"), 1)
        first = next(((number, *pair) for number, pair in pairs if pair[0] != pair[1]), None)
        if first is not None:
            number, was, now = first
            common = next((place for place, (one, other) in enumerate(zip(was, now, strict=False)) if one != other), 0)
            shown = slice(max(common - SHOWN, 0), common + SHOWN)
            lines.append(f"{run.name}.{part} differs in line {number}:\n  - {was[shown]}\n  + {now[shown]}")
    return lines


def read_lines(path: Path) -> list[str]:
    """The lines of a file; none if it is not there."""
    return path.read_text(encoding="utf-8").split("\n") if path.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
