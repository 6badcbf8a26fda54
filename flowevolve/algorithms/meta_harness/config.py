"""Meta-Harness's settings."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from flowevolve._util.settings import Settings


class MetaHarnessConfig(Settings):
    """Candidates per step and the time of the import check are those of Meta-Harness (arXiv 2603.28052)."""

    candidates: int = Field(default=3, gt=0, le=10)
    """One proposer may write at most this many harnesses."""
    rounds: int = Field(default=8, gt=0)
    """One proposer gets at most this many replies; in the last one it must write."""
    read_chars: int = Field(default=40_000, gt=0)
    """Characters of earlier runs that one proposer may read."""
    tries: int = Field(default=2, ge=0)
    """One proposer may try out at most this many harnesses before it writes; 0: the tool is not offered."""
    try_rows: int = Field(default=8, gt=0)
    """A harness that is tried out is run on this many training examples, at most half of all; it learns from the
    others.
    """
    batch: int = Field(default=8, gt=0)
    """Training examples per ``learn_from_batch``."""
    check_seconds: float = Field(default=30.0, gt=0)
    """The time limit for importing a harness."""
    run_seconds: float = Field(default=60.0, gt=0)
    """The time limit for one run of a harness over one data set, without its LLM calls."""
    calls_per_text: int = Field(default=4, gt=0)
    """A harness may make at most this many LLM calls one after another per text and, to learn, per training example."""
    prompt_chars: int = Field(default=40_000, gt=0)
    """The maximum length of one prompt of a harness."""
    test: bool = True
    """Whether the frontier is scored on the test splits at the end."""
    in_vain: int = Field(default=20, gt=0)
    """The run fails after this many proposers in a row that write nothing."""

    @model_validator(mode="before")
    @classmethod
    def _of_the_run(cls, given: object) -> object:
        if isinstance(given, Mapping) and "sandbox" in given:
            raise PydanticCustomError(
                "moved", "the sandbox belongs to the run; write what is in [algorithm.sandbox] under [sandbox]"
            )
        return given
