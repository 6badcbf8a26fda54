"""What the reports say of the aim ``time``."""

from __future__ import annotations

from bench.report import aiming, overview
from tests.bench.test_readme import row, throughput


def aimed() -> dict[str, object]:
    """A result with the aim ``time``: sooner than the defaults on one of two workloads, and for fewer tokens."""
    content = throughput(most="hover")
    rows = content["rows"]
    assert isinstance(rows, list)
    rows += [
        row(server, workload, method, seconds=seconds, tokens=400)
        for server in ("gpu", "api")
        for method, workload, seconds in (
            ("stream_time", "aime", 10.0),
            ("stream_time", "hover", 30.0),
            ("stream_time_real", "aime", 70.0),
            ("stream_time_real", "hover", 70.0),
        )
    ]
    return content


def test_it_is_told_beside_synchronous_gepa_and_the_defaults() -> None:
    said = overview.methods_beside_gepa(aimed(), "presets.md")
    assert '| [`aim = "time"`](presets.md), in real time | 0.70 (0.70) | 0.40 (0.40) | 0 of 4 (0) |' in said
    said = " ".join(aiming.beside_defaults(aimed()).split())
    assert (
        "after 0.10 to 0.30 and 0.10 to 0.30 of its time (a GPU's and an API's, medians by workload), where the" in said
    )
    assert (
        "where the defaults take 0.25 and 0.25, and for 0.40 and 0.40 of its tokens, where the defaults take 0.50"
        in said
    )
    assert (
        "It is sooner than the defaults in 2 of 4 comparisons and cheaper in 4, and with at most 20 rows for " in said
    )
    assert "validation sooner in 2 of 2 and cheaper in 2. 0 of 8 of its runs miss one" in said


def test_the_peer_that_merges_is_counted_against_it_in_real_time() -> None:
    assert aiming.beside_peer(aimed()) == (
        '. Beside our `aim = "time"` it first has it sooner in 2, for fewer in none, and keeps it sooner in\n2, for fewer in '
        "none"
    )


def test_what_was_not_measured_is_not_told() -> None:
    content = throughput(most="hover")
    assert "aim" not in overview.methods_beside_gepa(content, "")
    assert aiming.beside_defaults(content) == aiming.beside_peer(content) == ""
