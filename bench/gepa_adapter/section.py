"""The section of the page on this bench: gepa's own loops beside ours over one adapter."""

from __future__ import annotations

from bench._lib.text import Content, table


def section(content: Content) -> str:
    settings = content["settings"]
    rows = [
        (name, f"{mode['proposals_per_minute']:.0f}", f"{mode['requests_per_second']:.0f}")
        for name, mode in content["modes"].items()
    ]
    return f"""\
## One gepa adapter

    python -m bench.gepa_adapter --seconds {settings["seconds"]:.0f} --json bench/results/gepa_adapter.json

The task `house_style` as a gepa adapter whose requests share {settings["threads"]} client threads, validation on
{settings["validation"]} examples; a simulated server whose latency is lognormal around 0.15 s, whatever the load;
on the real clock, one run each. What runs ours is `flowevolve.compat.gepa.optimize` ([how to](how-to/gepa.md)).

{table(("", "proposals a minute", "requests a second"), rows)}

With `adapter_concurrency=1` nothing is gained here: this adapter writes the proposals itself, in its one turn.

The adapter is the bench's own; no other's throughput was measured. That gepa's default adapter, and its adapter for
batches in one session, come to gepa's own result on the simulated server is tested
(`tests/compat/gepa/test_gepas_adapters.py`); for DSPy programs the same is tested with a model that answers by hash,
without a server (`make test-dspy`).
"""
