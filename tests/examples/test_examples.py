"""Everything that documentation shows runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve.config.run import load_config
from flowevolve.core.budget import Budget
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from tests.support.depth import LONG

ROOT = Path(__file__).parents[2]
CONFIGS = sorted(path for path in (ROOT / "examples").rglob("*.toml") if path.name != "pyproject.toml")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_shipped_config_is_valid(path: Path) -> None:
    load_config(path)


@pytest.mark.parametrize("name", ["quickstart.toml", "virtual.toml", "full_speed.toml"])
def test_simulated_examples_improve_on_the_seed(name: str) -> None:
    config = load_config(ROOT / "examples" / name, ["clock=virtual", "sim.profile=qwen3-8b-h100"])
    config = config.model_copy(update={"budget": Budget(minutes=10 if LONG else 3)})

    async def go() -> Result:
        return await run(config)

    result = clock.run(go, clock="virtual")
    assert result.simulated
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score


def test_the_tutorials_own_task_runs(tmp_path: Path) -> None:
    """The code block of section 4, as a user would save it, named in a config."""
    text = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    block = text.split("## 4. Your own task")[1].split("## 5.")[0]
    lines = [line[4:] for line in block.splitlines() if line.startswith("    ") or not line.strip()]
    code = "\n".join(lines)
    (tmp_path / "my_task.py").write_text(code[code.index("# my_task.py") :])
    (tmp_path / "run.toml").write_text('clock = "virtual"\n[task]\nname = "my_task:Shorten"\n[budget]\nproposals = 3\n')
    command = [sys.executable, "-c", "from flowevolve.cli.app import main; main()", "run", "run.toml", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "on shorten" in done.stdout


def test_reference_pages_name_every_setting() -> None:
    """A setting that is not in the reference does not exist for a user."""
    page = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")
    words = set(re.findall(r"[a-z_]+", page))
    for path in CONFIGS:
        config = load_config(path)
        for section, value in config:
            assert section in words
            if hasattr(value, "model_fields_set"):
                assert set(type(value).model_fields) <= words | {"policy", "name"}


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_loop_of_ones_own_runs() -> None:
    command = [sys.executable, "examples/own_loop.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    added, best = done.stdout.splitlines()
    assert added.startswith("added c")
    assert best.startswith("best 0.")


def test_the_loop_that_the_how_to_shows_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "embedding.md").read_text("utf-8")
    block = [line for line in page.split("\n\n")[2].splitlines() if line.startswith("    ")]
    assert len(block) > 5
    program = [
        "from pathlib import Path",
        "import anyio, flowevolve as fe",
        "async def ask_somebody(best): return 'Be brief.'",
        "async def main():",
        *block,
        "anyio.run(main)",
    ]
    (tmp_path / "loop.py").write_text("\n".join(program))
    (tmp_path / "run.toml").write_text('sim.profile = "instant"\nbudget.proposals = 40\n')
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "loop.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "proposals=" in done.stdout
    assert (tmp_path / "runs" / "a" / "result.json").exists()
