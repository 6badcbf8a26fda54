"""The section of the page on this bench: gepa's own loops beside ours over one adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench._lib.stats import spread
from bench._lib.text import Content, ranged, table

FIGURES = {"seconds": 0, "proposals": 0, "proposals_per_minute": 0, "requests_per_second": 0, "best_score": 2}
"""The columns, each with its number of decimals."""
HEADER = (
    "",
    "seconds of a run",
    "proposals in a run",
    "proposals a minute",
    "requests a second",
    "best validation score",
)


def by_default(content: Content) -> float:
    """The proposals a minute that the drop-in makes by default, divided by those of gepa one at a time."""
    gepa, ours = (
        next(_rate(runs)["median"] for name, runs in content["runs"].items() if name.startswith(who))
        for who in ("gepa", "ours")
    )
    return ours / gepa


def answer(content: Content) -> str:
    rates = {name: _rate(runs) for name, runs in content["runs"].items()}
    ours, gepas = ({name: rate for name, rate in rates.items() if name.startswith(who)} for who in ("ours", "gepa"))
    most, widest = (max(found, key=lambda name: found[name]["median"]) for found in (ours, gepas))
    alone, batches = (gepas[name]["median"] for name in (next(iter(gepas)), widest))
    default = next(iter(ours.values()))["median"]
    return (
        f"{ranged(ours[most], 0)} with `{most.removeprefix('ours, ')}` and {default:.0f} by default, where gepa made "
        f"{alone:.0f} one at a time and at most {batches:.0f} in batches"
    )


def _rate(runs: Sequence[Content]) -> Mapping[str, float]:
    return spread([run["proposals_per_minute"] for run in runs]).as_json()


def section(content: Content) -> str:
    settings = content["settings"]
    rows = [
        (name, *(ranged(spread([run[figure] for run in runs]).as_json(), digits) for figure, digits in FIGURES.items()))
        for name, runs in content["runs"].items()
    ]
    options = f"--seconds {settings['seconds']:.0f} --repeats {settings['repeats']}"
    return f"""\
# One gepa adapter

    python -m bench.gepa_adapter {options} --json bench/results/gepa_adapter.json

gepa's own loop and `flowevolve.compat.gepa.optimize` ([how to](../how-to/gepa.md)) work over the same adapter. It does
the task `house_style`, sends its requests from {settings["threads"]} client threads and validates on
{settings["validation"]} examples. The server is simulated: its latency is lognormal around 0.15 s, whatever the load.
Time is real. Figures are medians of {settings["repeats"]} runs with their range. All runs of a mode have the same
seed. Those of gepa's, and of ours with one call at a time, come out the same each time: their repeats show how steady
the time is, and are no samples of a score. A run is stopped after {settings["seconds"]:.0f} s, lasts until what is
under way has ended, and its rates are over all of that. gepa reflects on the candidates of an iteration side by side
(`reflect_many`).

{table(HEADER, rows)}

With `adapter_concurrency=1` nothing is gained here, because the adapter's calls take turns and so do the calls of the
function that proposes.

The adapter was written for this bench, and no other adapter's throughput was measured. For gepa's default adapter, and
for its adapter that sends batches in one session, a test holds that they come to gepa's own result on the simulated
server (`tests/compat/gepa/test_gepas_adapters.py`). For DSPy programs the same is tested with a model that answers by
a hash, without a server (`make test-dspy`).
"""
