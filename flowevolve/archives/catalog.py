"""Archives that can be named in a configuration."""

from __future__ import annotations

from flowevolve._util.registry import Registry
from flowevolve.archives.base import CandidateArchive
from flowevolve.archives.pareto import ParetoArchive

ARCHIVES: Registry[CandidateArchive] = Registry(
    "archive", "flowevolve.archives", {"pareto": ParetoArchive}, CandidateArchive
)
