"""Meta-Harness's settings."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from flowevolve._util.settings import Settings


class MetaHarnessConfig(Settings):
    """Candidates per step and the time of the import check are those of Meta-Harness (arXiv 2603.28052)."""

    candidates: int = Field(default=3, gt=0, le=10)
    """Harnesses that one proposer may write."""
    rounds: int = Field(default=8, gt=0)
    """Replies of one proposer at most; in the last one it must write."""
    read_chars: int = Field(default=40_000, gt=0)
    """Characters of earlier runs that one proposer may read."""
    tries: int = Field(default=2, ge=0)
    """Harnesses that one proposer may have run before it writes; 0: the tool is not offered."""
    try_rows: int = Field(default=8, gt=0)
    """Training examples that such a harness is run on, of at most half of them; it learns from the others."""
    batch: int = Field(default=8, gt=0)
    """Training examples per ``learn_from_batch``."""
    check_seconds: float = Field(default=30.0, gt=0)
    """For a harness to be imported."""
    run_seconds: float = Field(default=60.0, gt=0)
    """For a harness to run over one data set once, without its LLM calls."""
    calls_per_text: int = Field(default=4, gt=0)
    """LLM calls one after another that a harness may make for a text, and, per training example, to learn."""
    prompt_chars: int = Field(default=40_000, gt=0)
    """Length of one prompt of a harness at most."""
    test: bool = True
    """Whether the frontier is scored on the test splits at the end."""
    in_vain: int = Field(default=20, gt=0)
    """Proposers one after another that write nothing, after which the run fails."""

    @model_validator(mode="before")
    @classmethod
    def _of_the_run(cls, given: object) -> object:
        if isinstance(given, Mapping) and "sandbox" in given:
            raise PydanticCustomError(
                "moved", "the sandbox is the run's: write what stands in [algorithm.sandbox] under [sandbox]"
            )
        return given
