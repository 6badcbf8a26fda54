"""Evaluations a second with all cores busy."""

from __future__ import annotations

from bench.report.text import Content, percent, table, verdict


def section(content: Content) -> str:
    settings, share = content["settings"], content["of_the_cores_limit"]
    rows = [
        ("the cores' limit: plain processes that call the function back to back", content["cores_limit_per_second"]),
        ("a run with (1+λ): evaluations that ran to their end", content["evaluations_per_second"]),
        ("a run with (1+λ): programs that failed before", content["failed_per_second"]),
        ("plain processes, a new one for each call", content["start_each_per_second"]),
    ]
    return f"""\
## Evaluations a second

    python -m bench.evaluations --json bench/results/evaluations.json

Programs that burn {settings["milliseconds"]:g} ms of a core each, in the sandbox, while LLM calls stream beside them \
({content["requests_in_flight"]:.0f} in flight
on average; *simulated*: profile `{settings["profile"]}`, in the same process); on the real clock, \
{settings["seconds"]:.0f} seconds. The engine and the
simulated server share the cores with the programs, and took {percent(content["own_cpu_share"])} of them.

{table(("", "a second"), [(name, f"{rate:.1f}") for name, rate in rows])}

**{share:.2f}** of the cores' limit; goal ≥ {content["goal"]:g}: {verdict(share >= content["goal"])}.
"""
