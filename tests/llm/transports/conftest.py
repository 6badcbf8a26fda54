"""What tests of transports have in common."""

from __future__ import annotations

import pytest

from tests.support.http_transports import KINDS, Kind
from tests.support.loopback import STREAMING


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each transport over HTTP in turn."""
    found: Kind = request.param
    return found


@pytest.fixture(params=[*KINDS, *STREAMING])
def make(request: pytest.FixtureRequest) -> Kind:
    """The class of a transport, which asks for streams or does not."""
    found: Kind = request.param
    return found
