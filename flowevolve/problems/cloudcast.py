"""Cloudcast: sending much data from one cloud region to several others, through further regions if that is cheaper."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import Field

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import kind, list_of
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError

MACHINES = 2
"""Machines in each region that takes part. The speeds and limits of links are those of one machine times this."""
MACHINE_COST = 0.54 / 3600
"""Dollars a second for each machine."""

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Link:
    """A link from one region to another: its cost in dollars a gigabyte, and its speed in gigabits a second."""

    cost: float
    speed: float


class Broadcast(Row):
    """Data to send from one region to several others; the fields are those of the ADRS benchmark's files.

    ``ingress_limit`` and ``egress_limit`` are in Gbit/s for one machine, by provider: the part of a region's name
    before the colon.
    """

    name: str
    source_node: str
    dest_nodes: tuple[str, ...] = Field(min_length=1)
    data_vol: float = Field(gt=0)
    num_partitions: int = Field(gt=0)
    ingress_limit: dict[str, float]
    egress_limit: dict[str, float]


class CostRow(Row):
    src: str
    dest: str
    cost: float = Field(ge=0)


class ThroughputRow(Row):
    src_region: str
    dst_region: str
    throughput_sent: float = Field(gt=0)


class Cloudcast(ShippedProblem):
    """Paths for every part of the data to every destination. Value of a case: 100 over the cost in dollars.

    The form is ADRS's, and so are the costs of its simulator. A part pays for a link once, however many destinations it
    goes on to. Each region that takes part has two machines until the slowest part has arrived; for this time the
    simulator divides gigabytes by gigabits a second, and so do we. Papers give the dollars of five broadcasts in total,
    on measured prices and speeds (``data``, a folder): 578.10 at best (LEVI, table 1), and 1035.14 for the cheapest
    path to each destination, which is our seed. The total does not follow from a mean of reciprocals, so there is no
    reference: add up the metric ``cost`` instead. A link's speed can be limited at both of its ends. The simulator's
    result then depends on the order of regions, and ours does not; the difference is some cents.
    """

    name = "cloudcast"
    entry = "broadcast"

    def __init__(
        self,
        data: Path | None = None,
        regions: int = 8,
        destinations: int = 6,
        instances: int = 5,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        self._links, self._broadcasts = (
            read_network(data) if data is not None else drawn_network(regions, destinations, instances, seed)
        )
        links: list[JSON] = [[*edge, link.cost, link.speed] for edge, link in self._links.items()]
        self.cases = [
            Case(
                each.name,
                {
                    "source": each.source_node,
                    "destinations": list(each.dest_nodes),
                    "parts": each.num_partitions,
                    "links": links,
                },
            )
            for each in self._broadcasts
        ]
        self.statement = (
            "Send data from one cloud region to several others at low cost. The data is cut into equal parts, and each "
            "part can take its own way to each destination, over other regions where that is cheaper.\n\n"
            "Write `broadcast(source, destinations, parts, links)`, called once for each broadcast. `source` is a "
            "region, `destinations` a list of regions, `parts` the number of parts, `links` a list of [from, to, "
            "dollars a gigabyte, gigabits a second]. It returns a dict with one entry for each destination: a list "
            "with one path for each part. A path is a list of regions from the source to the destination, each with a "
            "link to the next, and none twice.\n\n"
            "A part that several destinations get over the same link pays for it once: it is copied where the paths "
            f"part. Beyond that, each region on any path has {MACHINES} machines at ${MACHINE_COST * 3600:.2f} an hour "
            "until all parts have arrived, and where several links begin or end at a region they share its speed.\n\n"
            f"The score of a broadcast is 100 / (its cost in dollars), and the mean counts over {len(self.cases)} "
            f"broadcasts. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        broadcast = next(each for each in self._broadcasts if each.name == case.id)
        paths = self._paths(broadcast, result)
        volume = broadcast.data_vol / broadcast.num_partitions
        sent = {(edge, part) for ways in paths.values() for part, way in enumerate(ways) for edge in way}
        by_edge: dict[Edge, float] = {}
        for edge, _ in sorted(sent):
            by_edge[edge] = by_edge.get(edge, 0.0) + volume * self._links[edge].cost
        regions = {region for edge in by_edge for region in edge}
        slowest = min(self._flows(broadcast, list(by_edge)).values())
        machines = MACHINES * MACHINE_COST * (volume / slowest) * len(regions)
        cost = math.fsum(by_edge.values()) + machines
        dearest = max(by_edge, key=by_edge.__getitem__)
        return Verdict(
            100 / cost,
            f"${cost:.2f}, of which ${machines:.2f} are for machines in {len(regions)} regions. {len(by_edge)} links "
            f"are used; the one that costs most is {dearest[0]} to {dearest[1]} with ${by_edge[dearest]:.2f}.",
            metrics={"cost": cost},
        )

    def _paths(self, broadcast: Broadcast, result: JSON) -> dict[str, list[list[Edge]]]:
        """Read the paths by destination, one for each part.

        Raises:
            WrongResultError: naming the first path that is wrong.
        """
        if not isinstance(result, dict):
            raise WrongResultError(f"the result must be a dict of destinations, not {kind(result)}")
        missing = [each for each in broadcast.dest_nodes if each not in result]
        if missing:
            raise WrongResultError(f"the result has no paths to {', '.join(missing)}")
        if len(result) > len(broadcast.dest_nodes):
            raise WrongResultError(f"the result has {len(result)} entries for {len(broadcast.dest_nodes)} destinations")
        return {
            each: [
                self._path(broadcast.source_node, each, path, f"path {part} to {each}")
                for part, path in enumerate(
                    list_of(result[each], f"the list of paths to {each}", broadcast.num_partitions)
                )
            ]
            for each in broadcast.dest_nodes
        }

    def _path(self, source: str, destination: str, value: JSON, what: str) -> list[Edge]:
        regions = [region for region in list_of(value, what) if isinstance(region, str)]
        if len(regions) != len(list_of(value, what)):
            raise WrongResultError(f"{what} must be a list of names of regions")
        if len(regions) < 2 or regions[0] != source or regions[-1] != destination:
            raise WrongResultError(f"{what} must begin with {source} and end with {destination}")
        if len(set(regions)) < len(regions):
            raise WrongResultError(f"{what} goes through a region twice")
        edges = list(pairwise(regions))
        for a, b in edges:
            if (a, b) not in self._links:
                raise WrongResultError(f"{what}: there is no link from {a[:40]!r} to {b[:40]!r}")
        return edges

    def _flows(self, broadcast: Broadcast, edges: Sequence[Edge]) -> dict[Edge, float]:
        """The speed of each link in gigabits a second, when links share the ingress and egress limits of regions."""
        flows = {edge: self._links[edge].speed for edge in edges}
        for end, limits in ((0, broadcast.egress_limit), (1, broadcast.ingress_limit)):
            for region in {edge[end] for edge in edges}:
                sharing = [edge for edge in edges if edge[end] == region]
                limit = MACHINES * limits.get(region.partition(":")[0], math.inf)
                if sum(self._links[edge].speed for edge in sharing) > limit:
                    for edge in sharing:
                        flows[edge] = min(flows[edge], limit / len(sharing))
        return flows


def read_network(folder: Path) -> tuple[dict[Edge, Link], list[Broadcast]]:
    """Read ADRS's prices, speeds and broadcasts from a folder.

    Raises:
        InputError: if a file is missing or wrong, or a broadcast names a region without links.
    """
    costs = {(row.src, row.dest): row.cost for row in read_rows(folder / "cloudcast_cost.jsonl.gz", CostRow)}
    links = {
        (row.src_region, row.dst_region): Link(
            costs[row.src_region, row.dst_region], MACHINES * row.throughput_sent / 1e9
        )
        for row in read_rows(folder / "cloudcast_throughput.jsonl.gz", ThroughputRow)
        if (row.src_region, row.dst_region) in costs and row.src_region != row.dst_region
    }
    broadcasts = read_rows(folder / "cloudcast_configs.jsonl", Broadcast)
    regions = {region for edge in links for region in edge}
    for each in broadcasts:
        for region in (each.source_node, *each.dest_nodes):
            if region not in regions:
                raise InputError(f"{folder}: broadcast {each.name!r} names {region!r}, which has no links")
    return links, broadcasts


PROVIDERS: Mapping[str, tuple[float, float, float]] = {
    "sky": (10, 5, 0.09),
    "blue": (16, 7, 0.11),
    "open": (16, 16, 0.08),
}
"""The providers of drawn networks: Gbit/s in and out of one machine, and dollars a gigabyte to other providers."""


def drawn_network(
    regions: int, destinations: int, instances: int, seed: int
) -> tuple[dict[Edge, Link], list[Broadcast]]:
    """Draw regions of three providers in four parts of the world, with their links, and broadcasts between them.

    Links within a provider are cheap within a part of the world, and slower between parts. Some parts are expensive to
    leave, so that a detour can pay off; copying data as late as possible nearly always does.
    """
    check_least(2, regions=regions)
    check_least(1, destinations=destinations, instances=instances)
    if destinations >= len(PROVIDERS) * regions:
        most = len(PROVIDERS) * regions - 1
        raise InputError(f"task.destinations is {destinations}, but with {regions} regions it can be {most} at most")
    rng = random.Random(f"cloudcast {seed}")
    homes = {f"{provider}:{number}": rng.randrange(4) for provider in PROVIDERS for number in range(regions)}
    dear = [rng.uniform(0.0, 0.08) for _ in range(4)]
    links = {
        (one, other): _drawn_link(rng, one, other, here != there, dear[here])
        for one, here in homes.items()
        for other, there in homes.items()
        if one != other
    }
    broadcasts = []
    for number in range(instances):
        source, *targets = rng.sample(list(homes), destinations + 1)
        broadcasts.append(
            Broadcast(
                name=f"drawn_{number}",
                source_node=source,
                dest_nodes=tuple(targets),
                data_vol=300,
                num_partitions=10,
                ingress_limit={name: speeds[0] for name, speeds in PROVIDERS.items()},
                egress_limit={name: speeds[1] for name, speeds in PROVIDERS.items()},
            )
        )
    return links, broadcasts


def _drawn_link(rng: random.Random, one: str, other: str, far: bool, dear: float) -> Link:
    provider = one.partition(":")[0]
    own = provider == other.partition(":")[0]
    cost = 0.02 + far * dear if own else PROVIDERS[provider][2] + dear
    speed = MACHINES * rng.uniform(1.0, 3.0) if far else MACHINES * rng.uniform(3.0, 10.0)
    return Link(round(cost, 4), round(speed, 3))
