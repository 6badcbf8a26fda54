"""A command as the writer of programs: instead of an LLM call, it edits a program's files in a folder of its own."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from pydantic import Field

from flowevolve._util.clock import in_thread_until
from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.settings import Settings
from flowevolve._util.work_folders import work_folder
from flowevolve.core.assessment import Assessment
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.model import Usage
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.core.templates import Prompt
from flowevolve.prompts.commands import PROGRAM_FOLDER, command_prompt, read_usage

_KEPT_OUTPUT = 1000
_LONGEST_FILE = 1 << 20
_LOOKS_PER_SECOND = 10


class ProposerSettings(Settings):
    """A command of the user that writes programs in place of LLM roles. It runs with the user's rights."""

    command: tuple[str, ...] = ()
    """The program and its arguments, not passed through a shell. If empty, LLM roles write programs."""
    seconds: float = Field(default=600.0, gt=0)
    """After this time the command is killed with everything that it started; what it has written by then counts."""
    concurrency: int = Field(default=2, gt=0)
    """How many commands run at a time."""
    output_kb: int = Field(default=256, gt=0)
    """Only this much of the end of the command's output is read."""

    def make(self, statement: str) -> CommandProposer | None:
        """Make the proposer that runs the command for a task with this statement; None if there is no command.

        Raises:
            InputError: if there is no such program.
        """
        if not self.command:
            return None
        program = shutil.which(self.command[0])
        if program is None:
            raise InputError(
                f"algorithm.proposer.command: there is no program {self.command[0]!r}; install it, or give its path"
            )
        command = (str(Path(program).absolute()), *self.command[1:])
        return CommandProposer(command, self, statement, anyio.CapacityLimiter(self.concurrency))


class Wrote(Record, kind="command.wrote"):
    """What a command made of a program: the files that it changed, its exit status (-9: it was killed), the end of its
    output, and the tokens and dollars that it reports to have spent.
    """

    parent: str
    files: Mapping[str, str]
    status: int
    output: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0


@dataclass(frozen=True)
class CommandProposer:
    """Runs a command for each program that is to be written. The results are kept, so that a resumed run does not run a
    command again that had ended.
    """

    command: Sequence[str]
    settings: ProposerSettings
    statement: str
    limiter: anyio.CapacityLimiter

    async def write(
        self, parent: Candidate, others: Sequence[Candidate], prompt: Prompt, context: StageContext
    ) -> Wrote:
        """Run the command on the parent's program.

        Raises:
            InputError: if the command can't be started.
        """
        texts = self._texts(parent, others, command_prompt(context.templates, prompt))

        async def make() -> Wrote:
            run = _Run(self.command, texts, parent, self.settings)
            return await in_thread_until(run.kill, run.result, limiter=self.limiter)

        wrote = await context.once(Wrote, make)
        usage = Usage(wrote.prompt_tokens, wrote.completion_tokens)
        context.spend(Cost(tokens=usage.total_tokens, dollars=wrote.dollars))
        return wrote

    def _texts(self, parent: Candidate, others: Sequence[Candidate], prompt: Prompt) -> Mapping[str, str]:
        """The files that the command finds, by their paths in its working folder."""
        texts = {"PROMPT.md": prompt, "TASK.md": self.statement, "FEEDBACK.md": _feedback(parent)}
        texts |= {f"{PROGRAM_FOLDER}/{name}": text for name, text in parent.artifact.items()}
        for number, other in enumerate(others, 1):
            texts |= {f"others/{number}/{name}": text for name, text in other.artifact.items()}
            texts[f"others/{number}/FEEDBACK.md"] = _feedback(other)
        return texts


def _feedback(program: Candidate) -> str:
    assessment = Assessment.of(program)
    score = f"Score: {program.mean_score}" if program.scores and assessment.failure is None else "Score: none"
    return "\n".join(
        [score, *([f"It failed: {assessment.failure}"] if assessment.failure else []), assessment.feedback]
    )


@dataclass
class _Run:
    """One run of a command. It blocks, so it belongs in a thread; `kill` may be called from any other thread."""

    command: Sequence[str]
    texts: Mapping[str, str]
    parent: Candidate
    settings: ProposerSettings
    process: subprocess.Popen[bytes] | None = None
    unwanted: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def result(self) -> Wrote:
        """Run the command, and return its result.

        Raises:
            InputError: if the command can't be started.
        """
        with work_folder("proposer") as folder:
            for path, text in self.texts.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(text.encode("utf-8", "replace"))
            process = self._start(folder)
            try:
                output = self._output(process).decode("utf-8", "replace")
            finally:
                self.kill()
                status = process.wait()
                with self.lock:
                    self.process = None
                if process.stdout is not None:
                    process.stdout.close()
            usage, dollars = read_usage(output)
            return Wrote(
                parent=self.parent.id,
                files=self._changed(folder / PROGRAM_FOLDER),
                status=status,
                output=output[-_KEPT_OUTPUT:],
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                dollars=dollars,
            )

    def kill(self) -> None:
        """End the command with everything that it started."""
        with self.lock:
            self.unwanted = True
            if self.process is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)

    def _start(self, folder: Path) -> subprocess.Popen[bytes]:
        with (folder / "PROMPT.md").open("rb") as prompt, self.lock:
            try:
                self.process = subprocess.Popen(  # noqa: S603 - it is the user's own command, and no shell reads it
                    self.command,
                    cwd=folder,
                    stdin=prompt,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(
                    f"algorithm.proposer.command: {self.command[0]!r} can't be started: {reason_of(error)}"
                ) from error
            return self.process

    def _output(self, process: subprocess.Popen[bytes]) -> bytes:
        """The last part of the command's output up to when it ends, its time is up, or nobody wants it any more."""
        kept, most = b"", 1024 * self.settings.output_kb
        deadline = time.monotonic() + self.settings.seconds
        assert process.stdout is not None, "it was started with a pipe"
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not self.unwanted and time.monotonic() < deadline:
                if selector.select(1 / _LOOKS_PER_SECOND):
                    piece = os.read(process.stdout.fileno(), 1 << 16)
                    kept = (kept + piece)[-most:]
                    if piece:
                        continue
                    with suppress(subprocess.TimeoutExpired):  # it closed its output, and may go on
                        process.wait(1 / _LOOKS_PER_SECOND)
                if process.poll() is not None:
                    break
        return kept

    def _changed(self, folder: Path) -> dict[str, str]:
        """The files of the program that were changed; other files do not count."""
        changed: dict[str, str] = {}
        for name, old in self.parent.artifact.items():
            path = folder / name
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _LONGEST_FILE:
                continue
            text = path.read_bytes().decode("utf-8", "replace")
            if text.encode() != old.encode("utf-8", "replace"):
                changed[name] = text
        return changed
