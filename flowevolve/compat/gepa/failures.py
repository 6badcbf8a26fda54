"""Failures of a user's strategies. As in gepa, each ends the run, or an iteration with ``raise_on_exception=False``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gepa.core.state import GEPAState
from gepa.logging.logger import LoggerProtocol
from gepa.proposer.base import CandidateProposal
from gepa.strategies.acceptance import AcceptanceCriterion

from flowevolve._util.errors import FlowevolveError, TaskFailedError
from flowevolve.compat.gepa.data import AnyId
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.reflection import FAILURES_BEFORE_GIVING_UP
from flowevolve.core.graph import Discard


class Failures:
    """Reports failures of strategies to callbacks and the logger. With ``raising``, each ends the run, as it is.

    A strategy that always fails spends nothing, so no budget would ever end the run. Therefore the run also ends after
    `FAILURES_BEFORE_GIVING_UP` failures of a strategy in a row.
    """

    def __init__(self, mirror: Mirror, logger: LoggerProtocol, *, raising: bool) -> None:
        self.raising = raising
        self._mirror = mirror
        self._logger = logger
        self._in_a_row: Counter[str] = Counter()

    @contextmanager
    def of(self, strategy: str, *, told: bool = True) -> Iterator[None]:
        """Wrap one call of a user's strategy. ``strategy`` is the name of the argument it was passed as. ``told`` says
        whether a failure is reported; a resumed run does not report those of earlier iterations again.

        Raises:
            Discard: if the strategy failed and that does not end the run.
            TaskFailedError: if it failed so often in a row that it counts as broken.
        """
        try:
            yield
        except FlowevolveError:
            raise
        except Exception as error:
            reason = f"{strategy} failed with {type(error).__name__}: {error}"
            self._in_a_row[strategy] += 1
            broken = self._in_a_row[strategy] >= FAILURES_BEFORE_GIVING_UP
            if told:
                self._logger.log(f"flowevolve: {reason}")
                self._mirror.failed(error, will_continue=not (self.raising or broken))
            if self.raising:
                raise
            if broken:
                raise TaskFailedError(f"{reason}, for the {FAILURES_BEFORE_GIVING_UP}th time in a row") from error
            raise Discard(reason) from error
        del self._in_a_row[strategy]


@dataclass(frozen=True, slots=True)
class Forgiving:
    """An acceptance criterion whose failures are handled."""

    criterion: AcceptanceCriterion
    failures: Failures

    def should_accept(self, proposal: CandidateProposal[AnyId], state: GEPAState[object, AnyId]) -> bool:
        """Raises:
        Discard, TaskFailedError: as `Failures.of`.
        """
        with self.failures.of("acceptance_criterion"):
            return self.criterion.should_accept(proposal, state)
