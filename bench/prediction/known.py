"""All that a prediction knows of a server: its profile, and how long its model's answers were in separate runs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from bench.prediction.replies import Exchange, RecordedLengths
from flowevolve.sim.profiles import BatchingProfile, Profile


@dataclass(frozen=True, slots=True)
class Known:
    """What was measured before any of the runs that are predicted."""

    profile: BatchingProfile
    exchanges: list[Exchange]

    def model(self) -> tuple[Profile, RecordedLengths]:
        """The simulated server's profile and world."""
        replies = RecordedLengths(self.exchanges)
        return replace(self.profile, output=replies.output), replies

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: str) -> Known:
        return _KNOWN.validate_json(Path(path).read_bytes())


_KNOWN = TypeAdapter(Known)
