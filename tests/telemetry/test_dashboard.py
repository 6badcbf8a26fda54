"""The dashboard that ships, and the page of the reference, name the metrics that a run has, with their labels and units."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest

from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.llm.client.hedging import Hedging
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.router import Router
from flowevolve.telemetry import metrics as metrics_module, traffic_metrics
from flowevolve.telemetry.metrics import SERVER_GAUGES, Metrics
from flowevolve.telemetry.traffic_metrics import TrafficMetrics
from tests.support.some_events import some_changes, some_event

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "assets" / "grafana.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel, target) for panel in PANELS for target in panel["targets"]]
UNITS = {"_seconds": "s", "_ratio": "percentunit", "_dollars": "currencyUSD"}
"""Which unit a panel has by how the names of its metrics end. Other numbers have none, or are so many a second."""
EVENTS = [
    some_event(
        0, "pool.commit", version=1, best="c0", best_score=0.2, changes=some_changes(add="c0", status="confirmed")
    ),
    some_event(1, "item.taken", stage="screen", gap=2),
    some_event(2, "item.done", stage="screen", outcome="consumed", cost={"proposals": 1, "dollars": 0.5}),
    some_event(3, "allocation.changed", stage="screen", workers=2),
    some_event(4, "admission.changed", limit=3),
    some_event(5, "endpoint.ejected", endpoint="http://a/v1"),
    some_event(6, "limits.refused", backend="a", model="m"),
    some_event(8, "node.joined", node="a", machine="b", slots=2, capacity=2),
    some_event(7, "server.load", running=1, waiting=1, cache_usage=0.5, prefix_hit_rate=0.5),
]
"""Everything that makes a metric begin."""


class Endpoint:
    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        raise NotImplementedError

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass


def registry_of_a_run() -> CollectorRegistry:
    """The metrics of a run in which everything has happened."""
    metrics, traffic = Metrics(), TrafficMetrics()
    metrics.registry.register(traffic)
    scheduler = Scheduler(8)
    limits = Limits(scheduler)
    router = Router({"http://a/v1": Endpoint(), "http://b/v1": Endpoint()})
    traffic.watch(Traffic([router], limits, Hedging(scheduler, limits, 0.1)))
    for event in EVENTS:
        metrics.event(event)
    request = ChatRequest("m", (Message("user", "x"),))
    reply = ChatReply("y", Usage(5, 7, 4))
    metrics.call(CallRecord("task", CallScope("screen", "1", None, 0, 0), request, reply, None, 1, 0.0, 1.0, 3.0))
    return metrics.registry


@dataclass(frozen=True)
class Known:
    kind: str
    labels: frozenset[str]

    @classmethod
    def of(cls, family: Metric) -> Known:
        labels = frozenset(label for sample in family.samples for label in sample.labels)
        return cls(family.type, labels - {"le"})


def name_of(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


KNOWN = {name_of(family): Known.of(family) for family in registry_of_a_run().collect()}


def test_names_follow_the_conventions_of_prometheus() -> None:
    for name, known in KNOWN.items():
        assert re.fullmatch(r"flowevolve_[a-z0-9]+(_[a-z0-9]+)*", name), name
        assert name.endswith("_total") == (known.kind == "counter"), name
        assert not re.search(
            r"_(ms|millis\w*|minutes?|hours?|percent|rate|usage|kb|mb|cents?|counts?|sum|bucket|info)$", name
        ), name


def test_two_runs_in_one_process_share_nothing() -> None:
    first, second = registry_of_a_run(), Metrics().registry
    assert b"flowevolve_proposals_total 1.0" in generate_latest(first)
    assert b"flowevolve_proposals_total 0.0" in generate_latest(second)
    assert b"flowevolve" not in generate_latest(REGISTRY)


def test_the_reference_names_every_metric_with_its_kind_and_labels() -> None:
    page = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(flowevolve_\w+)` \| (\w+) \| (.*?) ?\| ", page, re.MULTILINE)
    assert {name: Known(kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows} == KNOWN


def test_the_reference_names_every_label_and_bound() -> None:
    page = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8").partition("### Labels")[2]
    rows = dict(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*) \|$", page, re.MULTILINE))
    labels = {label for cell in rows for label in re.findall(r"`(\w+)`", cell)}
    assert labels == {"le"}.union(*(known.labels for known in KNOWN.values()))
    for family in registry_of_a_run().collect():
        if family.type == "histogram":
            bounds = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels} - {float("inf")}
            (told,) = re.findall(rf"`{family.name}`.*?((?:[\d.]+, )+[\d.]+ and [\d.]+)", rows["`le`"])
            assert {float(each) for each in re.findall(r"\d+(?:\.\d+)?", told)} == bounds


def test_no_metric_is_left_out_here() -> None:
    """Some metrics begin only once something has happened."""
    sources = (Path(metrics_module.__file__), Path(traffic_metrics.__file__))
    named = {name for each in sources for name in re.findall(r'"(flowevolve_\w+)"', each.read_text(encoding="utf-8"))}
    assert named == {name.removesuffix("_total") for name in KNOWN} - {
        f"flowevolve_server_{name}" for name, _ in SERVER_GAUGES.values()
    }


def metrics_in(expression: str) -> list[tuple[str, str]]:
    """The metrics that an expression reads, and their selectors."""
    found: list[tuple[str, str]] = re.findall(r"\b(flowevolve_\w+)(?:\{([^}]*)\})?", expression)
    return [(re.sub("_bucket$", "", name), selector) for name, selector in found]


def test_the_dashboard_has_every_metric() -> None:
    assert {name for _, target in TARGETS for name, _ in metrics_in(target["expr"])} == set(KNOWN)


@pytest.mark.parametrize(
    ("panel", "target"), TARGETS, ids=[f"{panel['title']} {each['refId']}" for panel, each in TARGETS]
)
def test_a_panel_asks_for_what_there_is(panel: dict[str, Any], target: dict[str, str]) -> None:
    expression = target["expr"]
    ((name, selector),) = metrics_in(expression)
    known = KNOWN[name]
    matched = set(re.findall(r"(\w+)=", selector))
    grouped = {label for each in re.findall(r"by \(([^)]*)\)", expression) for label in each.split(", ")}
    shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert "instance" in matched  # else the runs of one Prometheus would be added up
    assert (matched | grouped | shown) - {"instance", "le"} <= known.labels
    if grouped:
        assert shown == grouped - {"le"}
    else:
        assert shown == known.labels | {"instance"}
    over_time = re.search(r"\b(rate|increase)\(", expression) is not None
    assert over_time == (known.kind != "gauge" and name != "flowevolve_spent_dollars_total")
    assert ("histogram_quantile" in expression) == (known.kind == "histogram")


@pytest.mark.parametrize("panel", PANELS, ids=[panel["title"] for panel in PANELS])
def test_a_panel_has_the_unit_of_its_metrics(panel: dict[str, Any]) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        ((name, _),) = metrics_in(target["expr"])
        wanted = UNITS.get(f"_{name.removesuffix('_total').rsplit('_', 1)[-1]}")
        assert unit == wanted if wanted else unit in ("none", "cps", "reqps")
        assert ("rate(" in target["expr"] and "histogram" not in target["expr"]) or unit not in ("cps", "reqps")


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not taken & cells
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
