"""A small git repository for tests of what goes by commits."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_WHO = ("-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false")


@dataclass(frozen=True, slots=True)
class Repository:
    """A new repository in a folder. The settings of whoever runs the test mean nothing to it."""

    folder: Path

    def __post_init__(self) -> None:
        self._git("init", "--quiet")

    def commit(self, name: str, content: str, message: str = "a change") -> str:
        """Commit a file with this content; returns the commit's short name."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        return self._git("rev-parse", "--short", "HEAD")

    def _git(self, *arguments: str) -> str:
        alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        command = ["git", *_WHO, *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True, env=alone)
        return done.stdout.strip()
