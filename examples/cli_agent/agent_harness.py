"""Meta-Harness with a command-line agent as its proposer: any program that reads files and writes some."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from pydantic import Field, PositiveFloat

import flowevolve as fe
from flowevolve._util.clock import in_thread
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import beside
from flowevolve.algorithms.meta_harness import MetaHarness, MetaHarnessConfig
from flowevolve.algorithms.meta_harness.view import View
from flowevolve.tasks import labelling as interface

TASK = f"""Write new harnesses, each as one file new/NAME.py; they are taken in the order of their names.
summary.txt has the scores of those there are, frontier.txt the best; harnesses/ has their sources, traces/ mistakes,
reports/ why some are invalid. {interface.__doc__}"""


class Settings(MetaHarnessConfig):
    command: tuple[str, ...] = Field(min_length=1)
    agent_seconds: PositiveFloat = 600


class Agent:
    """One run of a command in a folder of its own. `ask` blocks its thread; `kill` may be called from any other."""

    def __init__(self, settings: Settings) -> None:
        self.command, self.seconds = settings.command, settings.agent_seconds
        self.process: subprocess.Popen[bytes] | None = None
        self.unwanted = False

    def ask(self, texts: Mapping[str, str]) -> dict[str, JSON]:
        """The sources that the command wrote, its exit status (-9: it took too long), and the end of its output."""
        with tempfile.TemporaryDirectory(prefix="agent-") as name:
            folder, said = Path(name), Path(name, "said.txt")
            for path, text in texts.items():
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_text(text, encoding="utf-8")
                (folder / path).chmod(0o444)  # it is only a copy, so a change to it has no effect
            (folder / "new").mkdir()
            with said.open("wb") as out, suppress(subprocess.TimeoutExpired):
                self.process = process = subprocess.Popen(
                    self.command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
                process.wait(0 if self.unwanted else self.seconds)
            self.kill()
            status = process.wait()
            sources: list[JSON] = [path.read_text("utf-8", "replace") for path in sorted(folder.glob("new/*.py"))]
            return {"sources": sources, "status": status, "said": said.read_text("utf-8", "replace")[-1000:]}

    def kill(self) -> None:
        """End the command and everything that it started."""
        self.unwanted = True
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


class AgentHarness(MetaHarness):
    name = "agent_harness"
    config_type = Settings
    roles = ("task",)

    def __init__(self, task: fe.Task, config: Settings, tuning: fe.Tuning) -> None:
        super().__init__(task, config, tuning, proposer=self)
        self.settings = config
        if shutil.which(config.command[0]) is None:
            raise fe.InputError(f"algorithm.command: there is no program {config.command[0]!r}; give its path")

    async def write(self, view: View, context: fe.StageContext) -> Sequence[str]:
        async def make() -> dict[str, JSON]:
            agent = Agent(self.settings)
            async with beside() as tasks:
                tasks.start_soon(kill_in_the_end, agent)
                wrote = await in_thread(agent.ask, {**view.texts, "task.txt": TASK})
            await checkpoint_if_cancelled()  # if the run was cancelled, the killed agent has no result
            return wrote

        return cast("list[str]", (await context.once("agent.wrote", make))["sources"])


async def kill_in_the_end(agent: Agent) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        agent.kill()
