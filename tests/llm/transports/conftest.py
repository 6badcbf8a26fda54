"""What tests of transports have in common."""

from __future__ import annotations

import pytest

from tests.support.http_transports import KINDS, Kind


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each transport over HTTP in turn."""
    found: Kind = request.param
    return found
