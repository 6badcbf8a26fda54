"""``--metrics-port``: a run serves its metrics while it goes on, and no longer."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.support.command import flowevolve

TASK = """
from pathlib import Path
from urllib.request import urlopen
from anyio.to_thread import run_sync
from flowevolve.tasks.house_style import house_style_task


def make():
    task = house_style_task()
    rollout, seen = task.rollout, Path("seen.txt")

    async def looking(*arguments):
        if not seen.exists():
            seen.touch()
            with await run_sync(urlopen, "http://127.0.0.1:PORT/metrics") as answer:
                seen.write_bytes(answer.read())
        return await rollout(*arguments)

    task.rollout = looking
    return task
"""


def test_one_run_after_another_serves_its_metrics_on_the_same_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (tmp_path / "looking.py").write_text(TASK.replace("PORT", port))
    (tmp_path / "run.toml").write_text(
        'clock = "virtual"\ntask.name = "looking:make"\n[sim]\nprofile = "instant"\n[budget]\nproposals = 1\n'
    )
    for name in ("one", "two"):
        done = flowevolve("run", "run.toml", "--out", name, "--metrics-port", port, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        seen = (tmp_path / "seen.txt").read_text()
        assert "flowevolve_proposals_total 0.0" in seen
        assert "_created" not in seen
        (tmp_path / "seen.txt").unlink()
