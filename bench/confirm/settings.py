"""The settings of a comparison, which stay the same if the command goes on with what an earlier start has begun."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.confirm.gate import Sampling
from bench.confirm.rows import Sizes
from flowevolve._util.errors import InputError

FILE = "settings.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """``calls`` are the metric calls of each method in each repeat."""

    base_url: str
    sampling: Sampling
    rows: Sequence[str]
    data: Path | None
    sizes: Sizes
    calls: int

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "rows": list(self.rows), "data": None if self.data is None else str(self.data)}

    def keep(self, out: Path) -> None:
        """Write these settings into the folder of the results. If it already has some, they must be equal, except for
        the address, because a model can be served elsewhere.

        Raises:
            InputError: if they differ; it says where.
        """
        out.mkdir(parents=True, exist_ok=True)
        file, now = out / FILE, self.to_json()
        if not file.exists():
            file.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
            return
        before = json.loads(file.read_text(encoding="utf-8"))
        others = [name for name in now if name != "base_url" and json.loads(json.dumps(now[name])) != before.get(name)]
        if others:
            was = ", ".join(f"{name} was {before.get(name)!r}" for name in others)
            raise InputError(f"{out}: was begun with other settings ({was}); give those, or another folder as --out")
