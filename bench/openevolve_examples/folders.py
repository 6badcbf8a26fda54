"""Finds example folders, runs them, and makes the table of their results."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.problems.folders.catalog import system_of

EVALUATIONS = 6
TIMEOUT = 120
"""The time limit of one evaluation in seconds."""
PATIENCE = 900
"""The time limit of a folder in seconds."""


@dataclass(frozen=True, slots=True)
class FolderResult:
    """The result of one folder. ``scored`` counts the programs that did not fail, including the seed."""

    folder: str
    runs: bool
    seed: float | None = None
    best: float | None = None
    evaluated: int = 0
    scored: int = 0
    why: str = ""
    source: str = ""
    """The repository and commit that the folder is from."""
    score_trust: str | None = None
    """Whether its evaluator runs in a sandbox of its own (``isolated``) or not (``shared``); None if not known."""
    shared_because: str | None = None

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


def run_folder(root: Path, folder: Path, evaluations: int) -> FolderResult:
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
        program = "from flowevolve.cli.app import main; main()"
        command = [sys.executable, "-c", program, "run", str(folder), "--out", f"{out}/run", *given]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return FolderResult(name, False, why=f"not done after {PATIENCE} s")
        if done.returncode:
            return FolderResult(name, False, why=_why(done.stderr, root))
        return _read_result(name, json.loads(Path(out, "run", "result.json").read_text(encoding="utf-8")))


def _read_result(name: str, result: Mapping[str, object]) -> FolderResult:
    stages, best, seed = result["stages"], result["best"], result["seed_score"]
    assert isinstance(stages, dict)
    evaluated = stages["assess"]["items_in"]
    reasons = stages["update"]["discard_reasons"]
    failed = sum(count for reason, count in reasons.items() if reason.startswith("failed"))
    return FolderResult(
        name,
        True,
        float(seed) if isinstance(seed, int | float) else None,
        float(best["score"]) if isinstance(best, dict) else None,
        evaluated,
        evaluated - failed,
        score_trust=_text(result.get("score_trust")),
        shared_because=_text(result.get("shared_because")),
    )


def _why(errors: str, root: Path) -> str:
    lines = [line for line in errors.splitlines() if line.startswith("error: ")] or errors.splitlines()[-1:] or ["?"]
    return lines[-1].removeprefix("error: ").replace(f"{root}/", "").replace("|", "/")


def table(results: Sequence[FolderResult]) -> str:
    """The table in Markdown."""
    ran = sum(each.runs for each in results)
    rows = "\n".join(each.row() for each in results)
    isolated = sum(each.score_trust == "isolated" for each in results)
    shared = "".join(f"- `{each.folder}`: {each.shared_because}\n" for each in results if each.score_trust == "shared")
    return (
        f"{ran} of {len(results)} folders ran.\n\n"
        "| folder | from | runs | score: seed → best | programs scored, or why not |\n"
        f"| --- | --- | --- | --- | --- |\n{rows}\n\n"
        f"{isolated} evaluators worked in a sandbox of their own{', and these did not:' if shared else '.'}\n\n{shared}"
    )


def sources_of(root: Path) -> dict[str, str]:
    file = root / "sources.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def load(file: Path) -> list[FolderResult]:
    return [FolderResult(**each) for each in json.loads(file.read_text(encoding="utf-8"))["folders"]]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _short(number: float | None) -> str:
    return "–" if number is None else f"{number:.4g}"
