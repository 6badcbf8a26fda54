"""Source that is added to published programs, so that our problems can call them."""

from __future__ import annotations


def circles(function: str) -> str:
    """Source that returns circles as rows of x, y and radius."""
    return f"def pack(n):\n    return [[float(part) for part in row] for row in {function}()]\n"


def points(function: str) -> str:
    return f"def place(n, dimensions):\n    return [[float(part) for part in row] for row in {function}()]\n"


CENTRES_AND_RADII = """
def pack(n):
    centres, radii = run_packing()[:2]
    return [[float(x), float(y), float(radius)] for (x, y), radius in zip(centres, radii)]
"""

HEIGHTS = """
def heights():
    return [float(height) for height in run()[0]]
"""

WORKLOAD = '''
class _Workload:
    """What programs know of a workload: operations as (kind, key, place from 1, length), and an order's makespan."""

    def __init__(self, transactions):
        self.num_txns = len(transactions)
        self.txns = [
            [(kind, str(key), place, len(each)) for place, (kind, key) in enumerate(each, 1) if kind != "*"]
            for each in transactions
        ]
        self._lengths = [len(each) for each in transactions]

    def get_opt_seq_cost(self, order):
        used, written, last = {}, {}, 0
        for number in order:
            begin = 1
            for kind, key, place, _ in self.txns[number]:
                begin = max(begin, (used if kind == "w" else written).get(key, 0) + 2 - place)
            for kind, key, place, _ in self.txns[number]:
                when = begin + place - 1
                used[key] = max(used.get(key, 0), when)
                if kind == "w":
                    written[key] = max(written.get(key, 0), when)
            last = max(last, begin + self._lengths[number] - 1)
        return last
'''

SCHEDULE = """
def schedule(transactions):
    return [int(number) for number in get_best_schedule(_Workload(transactions))[1]]
"""

PLACE = """
def place(gpus, memory, models):
    made = [Model(str(number), each["size"], each["rate"], each["slo"], 0) for number, each in enumerate(models)]
    places = [0] * len(made)
    for gpu, group in compute_model_placement(gpus, made).items():
        for model in group:
            places[int(model.model_name)] = int(gpu)
    return places
"""

TOPOLOGY = '''
import collections
import heapq
import math
import random
import time
from typing import Any, Dict, List, Set, Tuple

import networkx
import networkx as nx
import numpy
import numpy as np


class BroadCastTopology:
    """What programs fill with the edges of each part's path to each destination."""

    def __init__(self, src, dsts, num_partitions=4, paths=None):
        self.src, self.dsts, self.num_partitions = src, dsts, num_partitions
        self.paths = paths or {dst: {str(part): None for part in range(num_partitions)} for dst in dsts}

    def get_paths(self):
        return self.paths

    def set_num_partitions(self, num_partitions):
        self.num_partitions = num_partitions

    def set_dst_partition_paths(self, dst, partition, paths):
        self.paths[dst][str(partition)] = paths

    def append_dst_partition_path(self, dst, partition, path):
        if self.paths[dst][str(partition)] is None:
            self.paths[dst][str(partition)] = []
        self.paths[dst][str(partition)].append(path)
'''

BROADCAST = """
def broadcast(source, destinations, parts, links):
    graph = networkx.DiGraph()
    for one, other, cost, throughput in links:
        graph.add_edge(one, other, cost=cost, throughput=throughput)
    topology = search_algorithm(source, list(destinations), graph, parts)

    def way(part, dst):
        tree = networkx.DiGraph()  # of all destinations: one may rely on an edge that is listed with another
        for ways in topology.paths.values():
            tree.add_edges_from((edge[0], edge[1]) for edge in ways[str(part)] or [])
        return networkx.shortest_path(tree, source, dst)

    return {dst: [way(part, dst) for part in range(parts)] for dst in destinations}
"""
