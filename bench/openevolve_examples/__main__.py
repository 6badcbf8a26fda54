"""Which example folders of other systems run unchanged: ``python -m bench.openevolve_examples PATH [--out FILE]``.

PATH is the ``examples`` folder of a checkout of OpenEvolve, ShinkaEvolve or LEVI. Every folder below it that one of
them could run is given to ``flowevolve run`` as it is, with the simulated coder (world ``code``) for an LLM and for a
few evaluations. PATH may have a ``sources.json``, ``{folder: "where it is from"}``, for the table. Prints the tables of
docs/how-to/openevolve.md; ``--table FILE`` prints one from figures of before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flowevolve.compat.folders.catalog import system_of
from flowevolve.errors import InputError

EVALUATIONS = 6
TIMEOUT = 120
"""Seconds for one evaluation."""
PATIENCE = 900
"""Seconds for a folder."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one folder. ``scored`` are the programs that were more than failures, the seed among them."""

    folder: str
    runs: bool
    seed: float | None = None
    best: float | None = None
    evaluated: int = 0
    scored: int = 0
    why: str = ""
    source: str = ""
    """The repository and commit that it is from."""

    def row(self) -> str:
        if not self.runs:
            return f"| `{self.folder}` | {self.source} | no | | {self.why} |"
        scores = f"{_short(self.seed)} → {_short(self.best)}"
        return f"| `{self.folder}` | {self.source} | yes | {scores} | {self.scored} of {self.evaluated} |"


def folders(path: Path) -> list[Path]:
    return sorted(folder for folder in [path, *path.rglob("*")] if folder.is_dir() and _is_problem(folder))


def _is_problem(folder: Path) -> bool:
    if "openevolve_output" in folder.parts:
        return False
    try:
        system_of(folder)
    except InputError:
        return False
    return True


def attempt(root: Path, folder: Path, evaluations: int) -> Tried:
    name = folder.relative_to(root).as_posix()
    settings = {
        "algorithm.name": "one_plus_lambda",
        "llm.backend": "sim",
        "sim.profile": "fast-demo",
        "budget.evaluations": evaluations,
        "sandbox.timeout": TIMEOUT,
    }
    with tempfile.TemporaryDirectory() as out:
        given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        program = "from flowevolve.cli import main; main()"
        command = [sys.executable, "-c", program, "run", str(folder), "--out", f"{out}/run", *given]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return Tried(name, False, why=f"not done after {PATIENCE} s")
        if done.returncode:
            return Tried(name, False, why=_why(done.stderr, root))
        return _tried(name, json.loads(Path(out, "run", "result.json").read_text(encoding="utf-8")))


def _tried(name: str, result: Mapping[str, object]) -> Tried:
    stages, best, seed = result["stages"], result["best"], result["seed_score"]
    assert isinstance(stages, dict)
    evaluated = stages["assess"]["items_in"]
    failed = stages["update"]["discard_reasons"].get("failed", 0)
    return Tried(
        name,
        True,
        float(seed) if isinstance(seed, int | float) else None,
        float(best["score"]) if isinstance(best, dict) else None,
        evaluated,
        evaluated - failed,
    )


def _why(errors: str, root: Path) -> str:
    lines = [line for line in errors.splitlines() if line.startswith("error: ")] or errors.splitlines()[-1:] or ["?"]
    return lines[-1].removeprefix("error: ").replace(f"{root}/", "").replace("|", "/")


def table(tried: Sequence[Tried]) -> str:
    """In Markdown."""
    ran = sum(each.runs for each in tried)
    rows = "\n".join(each.row() for each in tried)
    return (
        f"{ran} of {len(tried)} folders ran.\n\n"
        "| folder | from | runs | score: seed → best | programs scored, or why not |\n"
        f"| --- | --- | --- | --- | --- |\n{rows}\n"
    )


def _sources(root: Path) -> dict[str, str]:
    file = root / "sources.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def load(file: Path) -> list[Tried]:
    return [Tried(**each) for each in json.loads(file.read_text(encoding="utf-8"))["folders"]]


def _short(number: float | None) -> str:
    return "–" if number is None else f"{number:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="an examples folder")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--only", help="folders with this in their name")
    parser.add_argument("--out", type=Path, help="write the figures here")
    parser.add_argument("--table", type=Path, help="print the table of these figures")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(load(arguments.table)))
        return
    if arguments.path is None:
        parser.error("give an examples folder")
    root = arguments.path.resolve()
    sources = _sources(root)
    tried: list[Tried] = []
    for folder in folders(root):
        if arguments.only and arguments.only not in str(folder):
            continue
        came = attempt(root, folder, arguments.evaluations)
        tried.append(replace(came, source=sources.get(came.folder, "")))
        print(tried[-1].row(), flush=True)
    print(f"\n{table(tried)}")
    if arguments.out:
        figures = {"evaluations": arguments.evaluations, "folders": [asdict(each) for each in tried]}
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
