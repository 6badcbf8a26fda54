"""A real Ray cluster on loopback: a head without slots, and nodes with a slot and a core each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ray._private.node import Node
from ray.cluster_utils import Cluster

from flowevolve.sandbox.nodes.ray import RESOURCE

_ALIKE = {"object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}


@contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    made = Cluster(initialize_head=True, head_node_args={**_ALIKE, "num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(nodes):
            add_node(made)
        yield made
    finally:
        made.shutdown()


def add_node(made: Cluster, environment: Mapping[str, str] | None = None) -> Node:
    """Add a node with one slot and one core. Blocks, and may do so in a thread."""
    made._shutdown_at_exit = False  # of this node, by a signal handler of its own, for which a thread can't ask
    return made.add_node(num_cpus=1, resources={RESOURCE: 1}, env_vars=dict(environment or {}), **_ALIKE)


def kill_node(made: Cluster, node: Node) -> None:
    """Kill the raylet, without a word."""
    made.remove_node(node, allow_graceful=False)
