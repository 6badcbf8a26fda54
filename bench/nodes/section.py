"""The section of the page on this bench: what is left of a machine's evaluations a second on a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, Verdicts, percent, ranged, table, verdict

RATE, SHARE = "the pool's rate", "the cluster's share of the time"
"""What the goals are about."""


def answer(content: Content) -> str:
    shares = (
        f"{ranged(row['of_the_pool']['ray'])} for programs of {row['milliseconds']:g} ms" for row in content["rows"]
    )
    return f"of what a pool does, with Ray on the same machine and without a network: {', '.join(shares)}"


def goals(content: Content) -> Verdicts:
    goal = content["goal"]
    return {
        RATE: all(row["of_the_pool"]["ray"]["median"] >= goal["of_the_pool"] for row in content["rows"]),
        SHARE: _clusters_share(content) <= goal["share_of_50_ms"],
    }


def _shortest(content: Content) -> Content:
    """The row of the shortest programs."""
    rows: Sequence[Content] = content["rows"]
    return min(rows, key=lambda row: float(row["milliseconds"]))


def _clusters_share(content: Content) -> float:
    """The part of a short program's time that is the cluster's."""
    return 1 - float(_shortest(content)["of_the_pool"]["ray"]["median"])


def section(content: Content) -> str:
    settings, goal, met = content["settings"], content["goal"], goals(content)
    shortest, share = _shortest(content), _clusters_share(content)
    return f"""\
# Evaluations a second on the nodes of a cluster

    python -m bench.nodes --json bench/results/nodes.json

Time is real, and all of it is on one machine with two cores: a pool with {settings["slots"]} slots, as a run without a
cluster has; a Ray cluster with a head that offers nothing and {settings["slots"]} nodes with a slot each; and as many
jobs of submitit's local executor, with a slot each, over the connections that jobs of Slurm have. Each program burns
the given time of a core in the sandbox. {settings["waiting"]} programs are asked for at a time for each slot. Figures
are medians and ranges of {settings["rounds"]} measurements of {settings["seconds"]:g} seconds, in turns.

{_rates(content)}

The goal is at least {goal["of_the_pool"]:g} of the pool's rate with Ray: {verdict(met[RATE])}. Of a program of
{shortest["milliseconds"]:g} ms, {percent(share, 1)} of the time is the cluster's; the goal is at most
{percent(goal["share_of_50_ms"])}: {verdict(met[SHARE])}.

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
