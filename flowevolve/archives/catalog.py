"""Archives that can be named in a configuration."""

from __future__ import annotations

from flowevolve.archives.base import CandidateArchive
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.registry import Registry

ARCHIVES: Registry[CandidateArchive] = Registry(
    "archive", "flowevolve.archives", {"pareto": ParetoArchive}, CandidateArchive
)
