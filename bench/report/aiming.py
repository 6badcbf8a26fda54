"""What `algorithm.aim = "time"` gains and costs beside the defaults, synchronous gepa and the peer that merges."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content
from bench._lib.time_to_score import Rows, workloads
from bench.report.gains import both, for_less, missed, on_each, peer_ahead, score, simulated
from bench.throughput.goals import runs
from bench.throughput.rows import BASE, MERGING_PEER

AIMED, IN_REAL_TIME = "stream_time", "stream_time_real"
PEER = """\
. Beside our `aim = "time"` it first has it sooner in {sooner}, for fewer in {cheaper}, and keeps it sooner in
{sooner_kept}, for fewer in {cheaper_kept}"""
WHOLE = """\
On [simulated servers](../benchmarks/throughput.md) and the virtual clock a run with `aim = "time"` has synchronous
gepa's last score after {times} of its time (a GPU's and an API's, medians by workload), where the defaults take {ours},
and for {tokens} of its tokens, where the defaults take {fewer}. It is sooner than the defaults in {sooner} of {of}
comparisons and cheaper in {cheaper}, and with at most {few} rows for validation sooner in {sooner_with_few} of
{of_few} and cheaper in {cheaper_with_few}. {missed} of its runs miss one of these scores, {missed_by_default} of the
defaults. At equal tokens its score, less gepa's, is {score}, that of the defaults {score_by_default}.{real} The rule
was chosen on other rows, in the same kind of simulated world."""
WHOLE_REAL = """
In real time, as gepa and other projects run, it first has that score after {times} of gepa's time, for {tokens} of its
tokens; to reach and keep it, it takes {kept} of the time and {tokens_kept} of the tokens (a GPU's and an API's;
{repeats} runs of each workload)."""
FEW = 20
"""So many rows for validation are few."""


def beside_peer(content: Content) -> str:
    """How often the peer that merges is sooner or cheaper, in real time, as the end of a sentence; empty if that was
    not measured.
    """
    found = simulated(content)
    if not all(workloads(rows, IN_REAL_TIME, MERGING_PEER, BASE) for rows in found):
        return ""
    return PEER.format(**peer_ahead(found, IN_REAL_TIME))


def beside_defaults(content: Content) -> str:
    """What it gains and costs beside the defaults; empty if it was not measured."""
    found = simulated(content)
    if not all(workloads(rows, AIMED, "stream", BASE) for rows in found):
        return ""
    sooner, of = for_less(found, AIMED, "stream", "seconds")
    cheaper, _ = for_less(found, AIMED, "stream", "tokens")
    few = [
        {key: row for key, row in rows.items() if content["workloads"][key[0]]["validation"] <= FEW} for rows in found
    ]
    sooner_with_few, of_few = for_less(few, AIMED, "stream", "seconds")
    cheaper_with_few, _ = for_less(few, AIMED, "stream", "tokens")
    return WHOLE.format(
        few=FEW,
        sooner_with_few=sooner_with_few,
        of_few=of_few,
        cheaper_with_few=cheaper_with_few,
        times=on_each(found, AIMED),
        ours=on_each(found, "stream"),
        tokens=on_each(found, AIMED, spent="tokens"),
        fewer=on_each(found, "stream", spent="tokens"),
        sooner=sooner,
        of=of,
        cheaper=cheaper,
        missed=missed(found, AIMED),
        missed_by_default=missed(found, "stream"),
        score=both(score(rows, AIMED) for rows in found),
        score_by_default=both(score(rows) for rows in found),
        real=_in_real_time(found),
    )


def _in_real_time(found: Sequence[Rows]) -> str:
    if not all(workloads(rows, IN_REAL_TIME, BASE) for rows in found):
        return ""
    return WHOLE_REAL.format(
        times=on_each(found, IN_REAL_TIME),
        tokens=on_each(found, IN_REAL_TIME, spent="tokens"),
        kept=on_each(found, IN_REAL_TIME, kept=True),
        tokens_kept=on_each(found, IN_REAL_TIME, spent="tokens", kept=True),
        repeats=runs(found, IN_REAL_TIME),
    )
