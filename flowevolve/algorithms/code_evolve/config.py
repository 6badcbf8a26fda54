"""CodeEvolve's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from flowevolve._util.settings import Settings
from flowevolve.algorithms.code_evolve.exploration import ExplorationSettings
from flowevolve.archives.elites import FITNESS
from flowevolve.stages import WritingSettings

Topology = Literal["ring", "complete", "empty"]
"""Which islands send migrants to which."""


class ArchiveSettings(Settings):
    """Which programs of an island live on."""

    name: Literal["cvt", "grid", "naive"] = "cvt"
    """``cvt``, ``grid``: the best of each cell of a feature space; ``naive``: the best ``size``."""
    cells: int = Field(default=60, gt=0)
    """Cells of each island's feature space; on a ``grid``, at most this many, in a lattice with equal sides."""
    features: tuple[str, ...] = Field(default=(FITNESS, "seconds"), min_length=1)
    """``fitness``, features of the program's text, and metrics of the problem; ``seconds`` is its running time."""
    ranges: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """Least and greatest value of a feature; by default those seen on the island so far."""
    size: int = Field(default=40, gt=0)
    """``naive``: at most this many programs live."""

    @model_validator(mode="after")
    def _ranges_of_features(self) -> Self:
        for name, (low, high) in self.ranges.items():
            if name not in self.features:
                raise ValueError(f"ranges: {name!r} is none of the features, which are {', '.join(self.features)}")
            if not low < high:
                raise ValueError(
                    f"ranges.{name} goes from {low:g} to {high:g}, but the first number has to be below the second"
                )
        twice = next((name for name in self.features if self.features.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"features: {twice!r} is named twice; name each feature once")
        return self


class MigrationSettings(Settings):
    """Copies of good programs that go to other islands."""

    topology: Topology = "ring"
    every: int = Field(default=30, gt=0)
    """The number of epochs of an island from one migration to the next."""
    rate: float = Field(default=0.1, gt=0, le=1)
    """The share of an island's living programs that may migrate at a time; at least one does, if any may."""


class CodeEvolveConfig(WritingSettings):
    """Defaults are those of CodeEvolve (arXiv 2510.14150, appendix C) where it gives them; ``cells`` and
    ``migration.every`` those of its published runs.
    """

    islands: int = Field(default=5, gt=0)
    epoch: int = Field(default=1, gt=0)
    """The number of evaluations in an epoch of an island."""
    start_programs: int = Field(default=4, ge=0)
    """Programs each island has written from the seed alone, as roots of its trees, before it begins to select."""
    ancestors: int = Field(default=5, ge=0)
    """At most this many of a program's ancestors are shown with it when it is exploited."""
    inspirations: int = Field(default=2, ge=0)
    """At most this many other programs are shown."""
    prompts: int = Field(default=20, gt=0)
    """At most this many prompts of an island live: those with the best programs."""
    instructions: str = ""
    """The prompt that all islands begin with; empty: the built-in one."""
    exploring_role: str = Field(default="code", min_length=1)
    """The LLM role that writes programs when exploring; ``code`` writes the others."""
    archive: ArchiveSettings = ArchiveSettings()
    exploration: ExplorationSettings = ExplorationSettings()
    migration: MigrationSettings = MigrationSettings()

    @property
    def named_roles(self) -> Sequence[str]:
        """The role that writes programs when exploring, and those of all program algorithms."""
        return (self.exploring_role, *super().named_roles)
