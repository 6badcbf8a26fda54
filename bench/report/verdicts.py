"""Which goals each bench has, in a few words, and whether they are met. Its page has them with their figures."""

from __future__ import annotations

from collections.abc import Mapping

from bench._lib.text import Content
from bench.equal_calls.section import MOST_TIME, by_world, lead_of, time_of
from bench.overhead.section import GOAL, LEVELS, MOST_TIMES, RAW
from bench.page.section import BROWSERS, LEAST_FRAMES, MOST_LOST, lost
from bench.prediction.section import QUANTITIES
from bench.quality.section import GOAL as MOST_SHARE, LEAST, LEAST_LATER, WORST_GOAL

Verdicts = Mapping[str, bool]
"""What each goal is about, and whether it is met."""


def prediction(content: Content) -> Verdicts:
    goal = content["goal"]
    return {
        QUANTITIES[name]: off["median"] <= goal["median"] and off["worst"] <= goal["worst"]
        for name, off in content["summary"].items()
        if name in QUANTITIES
    }


def quality(content: Content) -> Verdicts:
    """A figure that was not measured misses nothing."""
    headline = content["headline"]
    shares = {"time in the median": ("time_median", MOST_SHARE), "time in the worst world": ("worst_world", WORST_GOAL)}
    leads = [(end, LEAST.get(moment, LEAST_LATER)) for moment, end in headline["equal_tokens"].items()]
    harsh = headline["harsh_worst"]
    return {
        **{name: headline[key] is None or headline[key] <= most for name, (key, most) in shares.items()},
        "score at equal tokens": all(end is None or end >= least for end, least in leads),
        "score at equal tokens in harsh worlds": harsh is None or harsh >= LEAST_LATER,
    }


def equal_calls(content: Content) -> Verdicts:
    groups = by_world(content)
    return {
        "a score that is surely not below gepa's": lead_of(groups).low >= 0,
        "time": time_of(groups).value <= MOST_TIME,
    }


def meta_harness(content: Content) -> Verdicts:
    return {"proposals a minute": content["spread"]["proposals_ratio"]["median"] >= content["goal"]}


def levi_proxy(content: Content) -> Verdicts:
    return {"the order of LEVI's figure 6": content["ordered"] == len(content["cells"])}


def evaluations(content: Content) -> Verdicts:
    return {
        f"programs of {row['milliseconds']:g} ms": row["of_the_cores_limit"] >= content["goal"]
        for row in content["rows"]
    }


def nodes(content: Content) -> Verdicts:
    goal, shares = (
        content["goal"],
        {row["milliseconds"]: row["of_the_pool"]["ray"]["median"] for row in content["rows"]},
    )
    return {
        "the pool's rate": min(shares.values()) >= goal["of_the_pool"],
        "the cluster's share of the time": 1 - shares[min(shares)] <= goal["share_of_50_ms"],
    }


def overhead(content: Content) -> Verdicts:
    targets, costs, most = content["targets"], content["costs"], max(LEVELS)
    whole, alone = (costs[f"{way}, {most} in flight"]["cpu_ms"]["median"] for way in (GOAL, RAW))
    return {
        "CPU time of a call": content["cpu_ms_per_call"] <= targets["cpu_ms_per_call"],
        "calls a second": content["calls_per_second"] >= targets["calls_per_second"],
        "CPU time beside aiohttp alone": whole / alone <= MOST_TIMES,
        **{
            f"growth: {name.partition(',')[0]}": part["ratio"] <= part["n_log_n"]
            for name, part in content["growth"].items()
        },
    }


def scale(content: Content) -> Verdicts:
    goal = content["goal"]
    row = next(row for row in content["replicas"] if row["replicas"] == goal["replicas"])
    return {
        "tokens of many replicas": row["share"]["median"] >= goal["share"],
        "tokens while a replica is away": content["outage"]["away"]["low"] >= 1 - 1 / goal["replicas"],
    }


def plan(content: Content) -> Verdicts:
    goal = content["goal"]
    return {
        "amounts in their intervals": content["covered"] / content["amounts"] >= goal["covered"],
        "how wide intervals are": content["median_factor"] <= goal["factor"],
    }


def sharing(content: Content) -> Verdicts:
    row = next(row for row in content["cases"] if row["case"] == "four equal runs" and row["gateway"])
    return {
        "equal parts": max(-row["least"]["low"], row["most"]["high"]) <= content["goal"]["fair"],
        "tokens of all together": row["together"]["median"] >= content["goal"]["together"],
    }


def page(content: Content) -> Verdicts:
    frames = min(view["frames_per_second"] for view in content["frames"]["views"])
    return {
        "calls a second": lost(content, BROWSERS).value <= MOST_LOST,
        "frames a second": frames >= LEAST_FRAMES,
    }
