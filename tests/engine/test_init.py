"""What init may raise: the run can't go on without what init does, so nothing that ends it is passed over."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from flowevolve._util.errors import BackendRefusedError, EngineError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit, NotYet
from flowevolve.core.model import RejectedError
from tests.support.small_runs import Carrier, Phase, Small, no_work, propose, run_small


def raising(error: Exception) -> Phase:
    async def phase(context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Carrier(propose(context)), to="update")
        raise error

    return phase


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Discard("no plan"),
            r"^stage 'init' of .*: Discard: no plan \(.*\.py, line \d+\): only a stage may raise this; raise an err",
        ),
        (NotYet(), r"^stage 'init' of .*: NotYet \(.*\.py, line \d+\): only a stage may raise this; raise an error"),
    ],
)
def test_an_outcome_that_only_stages_may_have_is_a_mistake(error: Exception, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        run_small(Small(no_work, init=raising(error)))


def test_a_reply_that_init_could_not_do_without_ends_the_run() -> None:
    error = run_small(Small(no_work, init=raising(RejectedError("too long")))).report.error
    assert isinstance(error, BackendRefusedError)
    assert str(error) == "algorithm 'small': init() did not get a reply that it needs: too long"


def test_a_finish_that_has_nothing_to_do_yet_is_a_mistake() -> None:
    with pytest.raises(EngineError, match=r"^stage 'finish' .*: NotYet was raised: only the entry stage may raise it"):
        run_small(Small(no_work, finish=raising(NotYet())))
