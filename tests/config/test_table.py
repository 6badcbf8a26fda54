"""Keys of a configuration, as users write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve.config.table import is_among, load_table


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


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[budget]\nminutes = 1\n", encoding="utf-8-sig")
    assert load_table(tmp_path / "run.toml", []) == {"budget": {"minutes": 1}}
