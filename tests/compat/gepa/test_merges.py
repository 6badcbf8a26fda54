"""gepa's own merges: those of a pair that it can't draw are skipped, and others are validated on their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from gepa.api import optimize as gepas_optimize

from flowevolve.compat.gepa.stages import AdapterScreen
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, ItemSent
from flowevolve.core.pool import Candidate
from flowevolve.journal.reading import RecordedRun
from flowevolve.policies.acceptance import StrictImprovement
from flowevolve.stages.group_commit import Group
from flowevolve.stages.payloads import Proposed
from tests.support.gepa_dummies import First, GEPAHashAdapter, HashAdapter, Silent, optimize


@dataclass
class Halves(GEPAHashAdapter):
    """The seed scores nothing; each example asks for one text."""

    breaks_at: int | None = None

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        if len(self.calls) == self.breaks_at:
            raise LookupError("the machine is gone")
        scores = [float(example in candidate.values()) for example in batch]
        return replace(super().evaluate(batch, candidate, capture_traces), scores=scores)


def halves(**arguments: Any) -> dict[str, Any]:
    """Arguments with which two children of the seed are to be merged, whose scores add up to nothing."""
    return {
        "seed_candidate": {"left": "", "right": ""},
        "trainset": ["left", "right"],
        "valset": ["left", "right"],
        "candidate_selection_strategy": First(),
        "custom_candidate_proposer": lambda candidate, _, names: {name: name for name in names},
        "merge_val_overlap_floor": 1,
        "max_metric_calls": 40,
        **arguments,
    }


def test_a_merge_that_gepa_can_not_draw_is_skipped() -> None:
    """gepa draws the common ancestor by its score, which fails where the only one scores 0."""
    with pytest.raises(ValueError, match="Total of weights"):
        gepas_optimize(adapter=cast(Any, Halves()), logger=Silent(), use_merge=True, **halves())
    logger = Silent()
    result = optimize(Halves(), max_in_flight=1, logger=logger, use_merge=True, **halves())
    assert result == optimize(Halves(), max_in_flight=1, **halves())
    assert any("a merge was skipped" in line for line in logger.lines)


def test_a_run_that_skipped_a_merge_goes_on(tmp_path: Path) -> None:
    whole, broken, second, logger = Halves(), Halves(breaks_at=9), Halves(), Silent()
    given = halves(use_merge=True, max_in_flight=1, logger=logger, track_best_outputs=False)
    expected = optimize(whole, **given)
    logger.lines.clear()
    with pytest.raises(LookupError):
        optimize(broken, run_dir=str(tmp_path), **given)
    assert any("a merge was skipped" in line for line in logger.lines)
    result = optimize(second, run_dir=str(tmp_path), **given)
    assert broken.calls + second.calls == whole.calls
    assert replace(result, run_dir=None) == expected


def test_where_edits_are_validated_in_groups_each_merge_is_validated_on_its_own(tmp_path: Path) -> None:
    optimize(
        HashAdapter(),
        run_dir=str(tmp_path),
        use_merge=True,
        adapter_concurrency=4,
        max_in_flight=6,
        max_metric_calls=600,
    )
    with RecordedRun(tmp_path) as recorded:
        bodies = [event.body for event in recorded.events()]
    proposed = {each.candidate: each for each in bodies if isinstance(each, CandidateProposed)}
    sent = [each for each in bodies if isinstance(each, ItemSent)]
    groups = [Group.from_json(each.data) for each in bodies if isinstance(each, OwnEvent) and each.kind == Group.kind]
    merges = {name for name, each in proposed.items() if each.operator == "merge"}
    assert any(len(each.edits) > 1 for each in groups), "edits that wait leave together"
    assert not merges & {name for each in groups for name in each.edits}
    screened = [each for each in sent if each.source == "screen"]
    assert all(each.stage == ("group" if len(each.derives) == 1 else "evaluate") for each in screened)


@pytest.mark.parametrize(("split", "stage"), [("train", None), ("val", "evaluate")])
def test_what_is_screened_on_validation_rows_goes_past_the_groups(split: Literal["train", "val"], stage: str) -> None:
    anything: Any = None  # what the screen has besides says nothing of where proposals go
    screen = AdapterScreen(anything, StrictImprovement(), anything, anything, anything)
    candidate = Candidate("c1", Artifact({"a": "b"}), ("c0",), "merge", 1)
    assert screen.sends_to(Proposed(candidate, (), (), split=split)) == stage
