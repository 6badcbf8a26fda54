"""What is on loopback."""

from __future__ import annotations

import pytest

from flowevolve._util.addresses import is_loopback


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        *(("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("192.168.0.1", False), ("::", False), ("localhost.example", False), ("", False)),
    ],
)
def test_loopback_is_told_from_other_hosts(host: str, is_one: bool) -> None:
    assert is_loopback(host) == is_one
