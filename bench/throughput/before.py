"""What the page says of results in which `stream` was not the defaults but had settings of its own.

This goes when no such result is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench._lib.methods.presets import DEFAULTS
from bench._lib.methods.process import METHODS as KNOWN, OURS
from bench._lib.text import Content, commit
from bench.throughput.goals import is_sooner
from bench.throughput.means import minutes
from bench.throughput.rows import BASE, Rows, methods, time_to_score, workloads

METHODS = (
    *(each for each in KNOWN if each not in OURS),
    "sync",
    "stream_plain",
    "stream",
    "stream_careful",
    "combee_10",
    "combee_40",
)
"""All methods that there were."""


def is_of_defaults(content: Content) -> bool:
    """Whether `stream` was what runs when nothing is set; results name the settings that they were measured with."""
    return bool(content["configurations"].get("stream", DEFAULTS) == DEFAULTS)


def warning(content: Content) -> str:
    """What stands on top of the page."""
    flows = content["configurations"]["stream"]["algorithm"]["max_in_flight"]
    return f"""\
**These figures are of another configuration than the defaults.** They were measured at {commit(content)}. At that time
`stream` had {flows} flows and settings of its own. `stream_plain` and `stream_careful` were other settings than today's
presets `plain` and `careful`. The result file has all of these settings. Today's defaults, which merge edits before
they validate them, have not been measured here yet."""


ACCEPTED = """\
*Accepted* is what entered the pool, and methods differ in what they let in. gepa, our lockstep and `stream_plain`
validate what was better on its minibatch and keep all of it. `stream_careful` keeps what does best on some validation
example. `stream` keeps only what raises the mean score and stops validating the rest early, so it makes more proposals
of the same tokens and keeps fewer of them. More proposals are therefore not the same as a better score: see the times
to a score and the best scores below."""


def late(content: Content, found: Mapping[str, Rows]) -> str:
    """Why the goal of time is missed on a server that is slower the more it serves; empty if the goal is met."""
    rows = found.get("vllm", {})
    names = [each for each in workloads(rows, BASE, "stream") if content["workloads"][each]["calls"] > 2]
    pxn = methods(rows, "gepa_pxn")
    if not names or not pxn or is_sooner(time_to_score(rows, "stream", pxn)):
        return ""
    server = rows[names[0], BASE]["server"]
    window = max(60 * minutes(content, each, server) for each in names)
    stream, gepa = (_first(rows, method, names) for method in ("stream", BASE))
    return f"""\
The goal for the time to a score is missed on {", ".join(names)} (vllm). There an example takes several calls, and
64 flows share a server that gets slower the more it serves. So the first improvement of `stream` is in the pool after
{stream} s and that of synchronous gepa after {gepa} s, while the window ends after {window:.0f} s. A stream of 64
flows has then hardly begun to validate, so its proposals are counted before all of their validations are paid for. The
other two streams keep more of what they validate (times and scores below). Longer windows were not measured here;
[the bench of quality](quality.md) has runs of three virtual hours."""


def _first(rows: Rows, method: str, names: Sequence[str]) -> str:
    times = [curve[1][0] for name in names for curve in rows[name, method]["curves"] if len(curve) > 1]
    return f"{min(times):.0f} to {max(times):.0f}" if times else "more than the window's"
