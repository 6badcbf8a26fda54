"""What the page on runs that last says of what the journal costs, and of what a run has open."""

from __future__ import annotations

from bench._lib.text import Content
from bench.durability.section import section
from bench.report.results import read


def result() -> Content:
    content = read("durability")
    assert content is not None
    return content


def test_what_the_journal_costs_has_its_spread_and_its_limit() -> None:
    lost = {"median": -0.006, "low": -0.015, "high": 0.107, "n": 7}
    details = {**result()["journal_overhead_details"], "lost_throughput": lost}
    said = section({**result(), "journal_overhead_details": details})
    assert "where the server allows 500 and is the limit (median of 7 pairs) | -0.6 % (-1.5 % to 10.7 %); " in said


def test_what_is_open_is_told_on_both_clocks() -> None:
    soaks = {
        "soak_virtual": {**result()["soak_virtual"], "handles": [14, 14], "tasks": [42, 42]},
        "soak_real": {**result()["soak_real"], "handles": [39, 47], "tasks": [42, 48]},
    }
    said = section({**result(), **soaks})
    assert "virtual clock | 14; 42 |" in said
    assert "real clock | 39 to 47; 42 to 48 |" in said
