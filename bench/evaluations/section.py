"""The section of the page on this bench: evaluations a second with all cores busy."""

from __future__ import annotations

from bench._lib.text import Content, percent, table


def section(content: Content) -> str:
    settings, rows = content["settings"], content["rows"]
    shown = [
        (
            f"{row['milliseconds']:g}",
            f"{row['cores_limit_per_second']:.1f}",
            f"{row['evaluations_per_second']:.1f}",
            f"{row['cut_short_per_second']:.1f}",
            f"{row['start_each_per_second']:.1f}",
            f"{row['of_the_cores_limit']:.2f}",
        )
        for row in rows
    ]
    header = ("ms of a core", "the cores' limit", "the run", "ended sooner", "a new process each", "of the limit")
    met = [f"{row['milliseconds']:g} ms" for row in rows if row["of_the_cores_limit"] >= content["goal"]]
    busiest = max(row["own_cpu_share"] for row in rows)
    return f"""\
## Evaluations a second

    python -m bench.evaluations --json bench/results/evaluations.json

Programs that burn so much time of a core each, in the sandbox, while LLM calls stream beside them (*simulated*:
profile `{settings["profile"]}`, in the same process); on the real clock, {settings["seconds"]:.0f} seconds each.
A program that has burnt its time counts, whatever its result is worth; one that its coder broke *ended sooner*.
The engine and the simulated server share the cores with the programs, and took {percent(busiest)} of them at most. All
rates are per second: *the cores' limit* is that of plain processes that call the function back to back, *a new process
each* that of plain Python processes.

{table(header, shown)}

Goal: at least {content["goal"]:g} of the cores' limit; met for programs of {", ".join(met) or "no length tried"}.
"""
