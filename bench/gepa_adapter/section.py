"""The section of the page on this bench: gepa's own loops beside ours over one adapter."""

from __future__ import annotations

from bench._lib.stats import spread
from bench._lib.text import Content, ranged, table

FIGURES = {"proposals": 0, "proposals_per_minute": 0, "requests_per_second": 0, "best_score": 2}
"""The columns, and how many decimals they have."""


def section(content: Content) -> str:
    settings = content["settings"]
    rows = [
        (name, *(ranged(spread([run[figure] for run in runs]).as_json(), digits) for figure, digits in FIGURES.items()))
        for name, runs in content["runs"].items()
    ]
    options = f"--seconds {settings['seconds']:.0f} --repeats {settings['repeats']}"
    return f"""\
## One gepa adapter

    python -m bench.gepa_adapter {options} --json bench/results/gepa_adapter.json

The task `house_style` as a gepa adapter whose requests share {settings["threads"]} client threads, validation on
{settings["validation"]} examples; a simulated server whose latency is lognormal around 0.15 s, whatever the load;
on the real clock; medians of {settings["repeats"]} runs each, with their range. gepa reflects on the candidates of an
iteration side by side (`reflect_many`). What runs ours is `flowevolve.compat.gepa.optimize` ([how to](how-to/gepa.md)).

These figures are of d1ddcd4, when each edit was validated by itself and 32 iterations were in flight. Groups of edits,
which the default validates now, make fewer proposals and better ones; they have not been measured here.

{table(("", "proposals in a run", "proposals a minute", "requests a second", "best validation score"), rows)}

With `adapter_concurrency=1` nothing is gained here: the adapter's calls take turns,
and so do those of the function that proposes.

The adapter is the bench's own; no other's throughput was measured. That gepa's default adapter, and its adapter for
batches in one session, come to gepa's own result on the simulated server is tested
(`tests/compat/gepa/test_gepas_adapters.py`); for DSPy programs the same is tested with a model that answers by hash,
without a server (`make test-dspy`).
"""
