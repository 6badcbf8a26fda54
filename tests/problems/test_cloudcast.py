"""Broadcasts over several clouds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, cast

import pytest

from flowevolve.problems.cloudcast import Broadcast, Cloudcast, Link
from flowevolve.programs import Case
from tests.problems.conftest import Court
from tests.support.problem_checks import called, refusal, score


class Small(Cloudcast):
    """Links a -> b -> c and b -> d, and an expensive one a -> c."""

    def __init__(self, parts: int = 2, egress: float = 100.0) -> None:
        super().__init__()
        self._links = {
            ("x:a", "x:b"): Link(0.1, 10.0),
            ("x:b", "x:c"): Link(0.1, 10.0),
            ("x:b", "x:d"): Link(0.1, 5.0),
            ("x:a", "x:c"): Link(0.5, 20.0),
            ("x:c", "x:b"): Link(0.1, 20.0),
        }
        self._broadcasts = [
            Broadcast(
                name="small",
                source_node="x:a",
                dest_nodes=("x:c", "x:d"),
                data_vol=100,
                num_partitions=parts,
                ingress_limit={"x": 100},
                egress_limit={"x": egress},
            )
        ]
        self.cases = [Case("small")]


OVER_B: dict[str, object] = {"x:c": [["x:a", "x:b", "x:c"]] * 2, "x:d": [["x:a", "x:b", "x:d"]] * 2}
MACHINE = 2 * 0.54 / 3600


def test_a_link_is_paid_once_for_each_part() -> None:
    shared = score(Small(), OVER_B)
    assert shared.metrics["cost"] == pytest.approx(3 * 100 * 0.1 + MACHINE * 4 * 50 / 5)
    assert shared.value == pytest.approx(100 / shared.metrics["cost"])
    half = score(Small(), {**OVER_B, "x:c": [["x:a", "x:b", "x:c"], ["x:a", "x:c"]]})
    assert half.metrics["cost"] == pytest.approx(2 * 100 * 0.1 + 50 * 0.1 + 50 * 0.5 + MACHINE * 4 * 50 / 5)


def test_links_share_what_a_region_lets_out() -> None:
    """Two machines with 2 Gbit/s each let 4 out of b, 2 over each of its links."""
    slow = score(Small(egress=2.0), OVER_B)
    assert slow.metrics["cost"] == pytest.approx(3 * 100 * 0.1 + MACHINE * 4 * 50 / 2)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ([], "the result must be a dict of destinations, not a list of 0"),
        ({}, "the result has no paths to x:c, x:d"),
        ({**OVER_B, "x:e": []}, "the result has 3 entries for 2 destinations"),
        ({**OVER_B, "x:c": None}, "the list of paths to x:c must be a list, not null"),
        ({**OVER_B, "x:c": [["x:a", "x:c"]]}, "the list of paths to x:c must have 2 entries, not 1"),
        ({**OVER_B, "x:c": [["x:a", "x:c"], ["x:b", "x:c"]]}, "path 1 to x:c must begin with x:a and end with x:c"),
        ({**OVER_B, "x:c": [["x:a", "x:c"], ["x:a", "x:b"]]}, "path 1 to x:c must begin with x:a and end with x:c"),
        ({**OVER_B, "x:c": [["x:a", "x:c"], []]}, "path 1 to x:c must begin"),
        ({**OVER_B, "x:c": [["x:a", "x:c"], ["x:a", 1, "x:c"]]}, "path 1 to x:c must be a list of names"),
        ({**OVER_B, "x:d": [["x:a", "x:d"]] * 2}, "path 0 to x:d: there is no link from 'x:a' to 'x:d'"),
        ({**OVER_B, "x:d": [["x:a", "x:b", "x:c", "x:b", "x:d"]] * 2}, "path 0 to x:d goes through a region twice"),
    ],
)
def test_wrong_paths_are_refused(result: object, says: str) -> None:
    assert refusal(Small(), result).startswith(says)


def test_sharing_pays_on_drawn_networks() -> None:
    """A tree that grows to the nearest destination each time is compared with the seed's separate paths."""
    problem = Cloudcast()
    gains = []
    for case in problem.cases:
        arguments = cast("dict[str, Any]", case.arguments)
        prices = {(here, there): price for here, there, price, _ in arguments["links"]}
        paths = {arguments["source"]: [arguments["source"]]}
        left = list(arguments["destinations"])
        while left:
            here, there = min(((a, b) for a in paths for b in left), key=prices.__getitem__)
            paths[there] = [*paths[here], there]
            left.remove(there)
        tree = {each: [paths[each]] * arguments["parts"] for each in arguments["destinations"]}
        gains.append(score(problem, tree, case).value / score(problem, called(problem, case), case).value)
    assert min(gains) > 1.05


def test_the_real_network_costs_what_its_prices_say(data_dir: Path, court: Court) -> None:
    """Direct paths send 300 gigabytes over each link. The seed is cheaper than they are, and LEVI's best than the seed."""
    folder = data_dir / "adrs"
    problem = Cloudcast(data=folder)
    assert [case.id for case in problem.cases] == ["inter_agz", "inter_gaz2", "intra_aws", "intra_azure", "intra_gcp"]
    prices = {}
    for line in gzip.decompress((folder / "cloudcast_cost.jsonl.gz").read_bytes()).splitlines():
        row = json.loads(line)
        prices[row["src"], row["dest"]] = row["cost"]
    ours = []
    for case in problem.cases:
        arguments = cast("dict[str, Any]", case.arguments)
        source, destinations = arguments["source"], arguments["destinations"]
        direct = score(problem, {each: [[source, each]] * 10 for each in destinations}, case).metrics["cost"]
        assert direct == pytest.approx(300 * sum(prices[source, each] for each in destinations), abs=0.1)
        ours.append(court.judge(problem, case=case).metrics["cost"])
        assert ours[-1] <= direct + 0.01
    assert sum(ours) == pytest.approx(1035.14, abs=0.01)
