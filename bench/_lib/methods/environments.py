"""Environments of peers that can't be installed beside our own dependencies.

Such a peer is run by the Python of its environment, with the repository on its path.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from bench._lib.paths import ROOT
from flowevolve._util.errors import InputError


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a package is installed, the command that installs it, and variables that its process needs."""

    package: str
    folder: Path
    command: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def ready(self) -> bool:
        return (self.folder / ".installed").is_file()

    def version(self) -> str:
        """The version that is installed."""
        places = [str(each) for each in self.folder.glob("lib/python*/site-packages")]
        return next(each.version for each in distributions(name=self.package, path=places))


ENVIRONMENTS: Mapping[str, Environment] = {
    "dspy_gepa_4x4": Environment(
        "dspy",
        ROOT / ".venv-dspy",
        "make peers",
        {"TQDM_DISABLE": "1"},  # otherwise its progress bar covers what other processes print
    ),
    "turbogepa": Environment(
        "turbo-gepa",
        ROOT / ".venv-peers" / "turbo-gepa",
        "make peers",
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # otherwise it looks up prices on the web
    ),
}
"""The environment of each peer that needs one of its own, by the name of the method."""
BESIDE: Mapping[str, str] = {"gepa": "gepa", "agentdescent": "agentdescent"}
"""The packages of the other peers, which are installed beside ours, by the prefix of their methods' names."""


def python_of(method: str) -> str:
    """The Python that runs a method."""
    environment = ENVIRONMENTS.get(method)
    return sys.executable if environment is None else environment.python


def variables_of(method: str) -> Mapping[str, str]:
    environment = ENVIRONMENTS.get(method)
    return {} if environment is None else environment.variables


def require(methods: Sequence[str]) -> None:
    """Check that the packages of these methods are installed.

    Raises:
        InputError: if one of them is not.
    """
    for method in methods:
        environment = ENVIRONMENTS.get(method)
        if environment is not None and not environment.ready():
            raise InputError(f"{method}: {environment.package} is not installed; it comes with: {environment.command}")
    for package in _beside(methods):
        try:
            version(package)
        except PackageNotFoundError:
            raise InputError(f"{package} is not installed; it comes with: pip install 'flowevolve[peers]'") from None


def versions(methods: Sequence[str]) -> dict[str, str]:
    """The versions of the other projects' packages that these methods run."""
    own = [ENVIRONMENTS[method] for method in methods if method in ENVIRONMENTS]
    return {**{each: version(each) for each in _beside(methods)}, **{each.package: each.version() for each in own}}


def _beside(methods: Sequence[str]) -> list[str]:
    return [package for start, package in BESIDE.items() if any(method.startswith(start) for method in methods)]
