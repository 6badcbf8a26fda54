"""The section of the page on this bench: what is left of a machine's evaluations a second on a cluster."""

from __future__ import annotations

from bench._lib.text import Content, Verdicts, ranged, table, verdict

RATE = "the pool's rate"
"""What the goal is about."""


def answer(content: Content) -> str:
    shares = (
        f"{ranged(row['of_the_pool']['ray'])} for programs of {row['milliseconds']:g} ms" for row in content["rows"]
    )
    return f"of what a pool does, with Ray on the same machine and without a network: {', '.join(shares)}"


def goals(content: Content) -> Verdicts:
    goal = content["goal"]["of_the_pool"]
    return {RATE: all(row["of_the_pool"]["ray"]["median"] >= goal for row in content["rows"])}


def section(content: Content) -> str:
    settings, goal, met = content["settings"], content["goal"], goals(content)
    return f"""\
# Evaluations a second on the nodes of a cluster

    python -m bench.nodes --json bench/results/nodes.json

Time is real, and all of it is on one machine with two cores: a pool with {settings["slots"]} slots, as a run without a
cluster has; a Ray cluster with a head that offers nothing and {settings["slots"]} nodes with a slot each; and as many
jobs of submitit's local executor, with a slot each, over the connections that jobs of Slurm have. Each program burns
the given time of a core in the sandbox. {settings["waiting"]} programs are asked for at a time for each slot. Figures
are medians and ranges of {settings["rounds"]} measurements of {settings["seconds"]:g} seconds, in turns.

{_rates(content)}

The goal is at least {goal["of_the_pool"]:g} of the pool's rate with Ray: {verdict(met[RATE])}.

Both clusters' own processes, the run and the programs share two cores here. On machines of their own, nodes leave their
cores to programs, and messages take a network's time. Measured with Ray {content["clusters"]["ray"]} and submitit
{content["clusters"]["submitit"]}.
"""


def _rates(content: Content) -> str:
    header = ["ms of a core", "pool, a second", "Ray", "jobs", "Ray, of the pool", "jobs, of the pool"]
    return table(
        header,
        (
            [
                f"{row['milliseconds']:g}",
                *(ranged(row["per_second"][kind], 1) for kind in ("here", "ray", "slurm")),
                *(ranged(row["of_the_pool"][kind]) for kind in ("ray", "slurm")),
            ]
            for row in content["rows"]
        ),
    )
