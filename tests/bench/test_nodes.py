"""The page on evaluations a second on a cluster."""

from __future__ import annotations

import subprocess
import sys

from bench._lib.paths import ROOT
from bench.nodes.section import answer, section


def spread(value: float) -> dict[str, float]:
    return {"median": value, "low": value, "high": value}


def content(of_the_pool: float) -> dict[str, object]:
    row = {
        "milliseconds": 50.0,
        "per_second": {"here": spread(34.0), "ray": spread(34.0 * of_the_pool), "slurm": spread(33.0)},
        "of_the_pool": {"ray": spread(of_the_pool), "slurm": spread(0.97)},
    }
    goal = {"of_the_pool": 0.95}
    settings = {"slots": 2, "waiting": 16, "rounds": 5, "seconds": 12.0}
    clusters = {"ray": "2.60.0", "submitit": "1.5.4"}
    return {"rows": [row], "goal": goal, "settings": settings, "clusters": clusters}


def test_the_page_says_whether_the_goal_is_met() -> None:
    page = section(content(0.96))
    assert "0.95 of the pool's rate with Ray: met." in page
    assert "| 50 | 34.0 | 32.6 | 33.0 | 0.96 | 0.97 |" in page
    said = answer(content(0.96))
    assert "on the same machine and without a network" in said
    assert said.endswith(": 0.96 for programs of 50 ms")


def test_and_that_it_is_missed() -> None:
    page = section(content(0.88))
    assert "0.95 of the pool's rate with Ray: missed." in page


def test_its_statistics_are_there_where_scipy_is_not_installed_as_in_the_environment_with_ray() -> None:
    code = "import sys; sys.modules['scipy'] = None; import bench._lib.stats"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
