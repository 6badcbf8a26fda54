"""gepa's own merges: its proposer finds them on gepa's state, and the stream evaluates them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from gepa.logging.logger import LoggerProtocol
from gepa.proposer.base import CandidateProposal
from gepa.proposer.merge import MergeProposer

from flowevolve.compat.gepa.data import AnyId, Examples, IdsOnly
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.core.pool import Add, Update


class UndrawableError(Exception):
    """Why gepa could not draw one of the merges there are."""


class Merger:
    """When a merge is due is a function of the log; which it is, of how often it was looked for as well."""

    def __init__(
        self, mirror: Mirror, val: Examples, logger: LoggerProtocol, random: Random, *, most: int, overlap: int
    ) -> None:
        self._mirror = mirror
        self._proposer: MergeProposer[AnyId] = MergeProposer(
            logger=logger,
            valset=IdsOnly(val.loader),
            evaluator=_not_yet,  # type: ignore[arg-type]  # it has no type of its own for outputs
            use_merge=True,
            max_merge_invocations=most,
            val_overlap_floor=overlap,
            rng=random,
        )

    def apply(self, update: Update) -> None:
        """A merge that has entered uses up one; anything else but the seed may make one due."""
        for change in update.changes:
            if not isinstance(change, Add) or change.status != "confirmed":
                continue
            if change.candidate.operator == "merge":
                self._proposer.merges_due -= 1
                self._proposer.total_merges_tested += 1
            elif change.candidate.operator != "seed":
                self._proposer.last_iter_found_new_program = True
                self._proposer.schedule_if_needed()

    def find(self) -> CandidateProposal[AnyId] | None:
        """The merge to try in this iteration, if one is due and there is one. Its scores mean nothing yet.

        Raises:
            UndrawableError: if gepa can't choose among common ancestors. The merge stays due.
        """
        proposer, state = self._proposer, self._mirror.state
        due = proposer.merges_due > 0 and proposer.last_iter_found_new_program
        calls = state.total_num_evals
        try:
            return proposer.propose(state) if due else None
        except ValueError as error:  # it draws an ancestor by score, and can't where the scores add up to nothing
            raise UndrawableError(str(error)) from error
        finally:
            state.total_num_evals = calls  # it counts its evaluation, which is still to come
            proposer.last_iter_found_new_program = False


def _not_yet(
    inputs: Sequence[object], candidate: dict[str, str]
) -> tuple[Sequence[object], list[float], Sequence[dict[str, float]] | None]:
    return inputs, [0.0] * len(inputs), None
