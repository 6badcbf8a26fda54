"""Pairs kept in a folder, so that a bench of an hour can go on where it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bench._lib.measured import GEPA
from bench.quality.pairs import Pair

_PAIR = TypeAdapter(Pair)
MEASURED = (
    *GEPA,
    "flowevolve/algorithms/combee",
    "bench/_lib/house_style.py",
    *(f"bench/quality/{name}.py" for name in ("methods", "pairs", "runs")),
)
"""Everything that decides the result of a pair, as git's pathspecs."""


class KeptPairs:
    """Keeps pairs in ``folder``, or nowhere if that is None. A pair is only read again if it was made with the same
    code, for as many minutes, and by the same methods. ``code`` names the code by the last commit that changed it.
    """

    def __init__(self, folder: Path | None, code: str) -> None:
        self._folder = folder
        self._code = code
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def read(self, world: str, seed: int, minutes: float, methods: Mapping[str, Mapping[str, object]]) -> Pair | None:
        """The pair, or None if it has to be run."""
        if self._folder is None:
            return None
        try:
            kept = json.loads(self._file(self._folder, world, seed).read_text(encoding="utf-8"))
            if kept["made"] != self._made(minutes, methods):
                return None
            return _PAIR.validate_python(kept["pair"])
        except (FileNotFoundError, json.JSONDecodeError, KeyError, ValidationError):
            return None

    def write(self, pair: Pair, methods: Mapping[str, Mapping[str, object]]) -> None:
        """Keep a pair."""
        if self._folder is not None:
            content = {"made": self._made(pair.minutes, methods), "pair": _PAIR.dump_python(pair, mode="json")}
            self._file(self._folder, pair.world, pair.seed).write_text(json.dumps(content), encoding="utf-8")

    def _made(self, minutes: float, methods: Mapping[str, Mapping[str, object]]) -> object:
        return json.loads(json.dumps({"code": self._code, "minutes": minutes, "methods": dict(methods)}))

    @staticmethod
    def _file(folder: Path, world: str, seed: int) -> Path:
        return folder / f"{world}-{seed}.json"
