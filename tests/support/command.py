"""The command line, called in this process: a child would spend a second to import what is here already.

What needs a process of its own (signals, a hash seed, the exit of the interpreter) starts one.
"""

from __future__ import annotations

import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
import structlog

from flowevolve.cli.app import main


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def flowevolve(*arguments: str, cwd: Path) -> Done:
    """Run ``flowevolve`` with these arguments in a folder."""
    stdout, stderr = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(cwd), redirect_stdout(stdout), redirect_stderr(stderr):
        patch.setattr(sys, "argv", ["flowevolve", *arguments])
        patch.setattr(sys, "path", [*sys.path])
        with pytest.raises(SystemExit) as ended:
            main()
    for name in [name for name, module in sys.modules.items() if _is_below(cwd, module)]:
        del sys.modules[name]  # a process of its own would leave none of them behind
    structlog.reset_defaults()  # its records went to an output that is gone now
    assert isinstance(ended.value.code, int)
    return Done(ended.value.code, stdout.getvalue(), stderr.getvalue())


def _is_below(folder: Path, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder)
