"""Which failures of calls are the server's, and which the request's."""

from __future__ import annotations

import pytest

from flowevolve.core.model import (
    CutWhileThinkingError,
    LLMError,
    OverloadedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
    server_failed,
)


@pytest.mark.parametrize("error", [UnreachableError("reset"), OverloadedError("429"), ServerError("HTTP 500")])
def test_a_server_that_is_silent_or_out_of_order_has_failed(error: LLMError) -> None:
    assert server_failed(error)


@pytest.mark.parametrize(
    "error",
    [RejectedError("too long"), CutWhileThinkingError("cut"), ServerError("the answer has no text", usage=Usage(9, 2))],
)
def test_one_that_made_of_the_request_what_it_could_has_not(error: LLMError) -> None:
    assert not server_failed(error)
