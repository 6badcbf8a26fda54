"""Keys of a configuration, as users write them."""

from __future__ import annotations

import pytest

from flowevolve.config.table import is_among


@pytest.mark.parametrize(
    ("key", "among"),
    [
        ("llm", True),
        ("llm.concurrency", True),
        ("algorithm.aim", True),
        ("algorithm", False),
        ("llms.concurrency", False),
    ],
)
def test_a_key_is_a_setting_or_in_a_section(key: str, among: bool) -> None:
    assert is_among(key, ["algorithm.aim", "llm"]) == among
