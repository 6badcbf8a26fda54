"""What each stage did when, how many requests were in flight, and how many tokens were written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from flowevolve._util.console import shown
from flowevolve.core.calls import HELD_OUT
from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.figures.style import (
    DARK,
    GREY,
    PAGE,
    PALE,
    RED,
    Drawing,
    drawing,
    in_style,
    role_colours,
    time_unit,
    whole_numbers,
)
from flowevolve.page.projection.projection import Slots
from flowevolve.page.projection.rates import Rates
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow, ServerRow, StageRow
from flowevolve.page.tables.work import CallRow, SpanRow

STEPS = 350
"""Into how many steps the run is divided where means are drawn."""
MOST_SHAPES = 3000
"""With more bars than this, they are drawn as pixels in vector formats, too."""
NOTHING = 0.01
"""A stage without requests whose work takes less than this share of the run is not shown."""
FAILED, WORK = "failed request", "work without requests"


@dataclass(slots=True)
class _Stage:
    """What is drawn of a stage: bars from one time to another, each in a lane."""

    lanes: int = 0
    bars: list[tuple[str, int, float, float]] = field(default_factory=list)
    """What each is, its lane, and when it begins and ends in seconds."""

    def add(self, kind: str, lane: int, begun: float, ended: float) -> None:
        self.bars.append((kind, lane, begun, ended))
        self.lanes = max(self.lanes, lane + 1)


def draw_timeline(runs: Mapping[str, Tables]) -> Drawing:
    """The requests of each stage as bars, above requests in flight and tokens a second, of the first of the runs.

    Requests that score the test split afterwards are left out.
    """
    tables = next(iter(runs.values()))
    (run,) = tables.of(RunRow)
    calls = [call for call in tables.of(CallRow) if call.outcome != "cached" and call.stage != HELD_OUT]
    stages = _stages(tables, calls, run.seconds)
    if not stages:
        raise EmptyFigureError("timeline", "no request was made")
    end = max([run.seconds, *(call.ended for call in calls)])
    rates = Rates(end, STEPS)
    for call in calls:
        rates.take(call)
    unit, size = time_unit(end)
    heights = [_height(stage) for stage in stages.values()]
    lanes_height = max(0.9, min(3.2, 0.16 * sum(heights)))
    with in_style():
        figure = drawing(PAGE, lanes_height + 2.0)
        colours = role_colours(rates.in_flight)
        lanes, requests, tokens = figure.subplots(3, 1, sharex=True, height_ratios=[lanes_height, 0.8, 0.6])
        _draw_stages(lanes, stages, heights, {**colours, FAILED: RED, WORK: GREY}, size)
        _draw_in_flight(requests, rates, colours, list(tables.of(ServerRow)), size)
        tokens.stairs(rates.tokens, _edges(rates, size), fill=True, color=GREY)
        tokens.set_ylabel("completion\ntokens/s")
        whole_numbers(tokens)
        tokens.set_xlabel(f"time ({unit})")
        tokens.set_xlim(0, end / size)
        figure.align_ylabels([requests, tokens])
    return figure


def _stages(tables: Tables, calls: Sequence[CallRow], seconds: float) -> dict[str, _Stage]:
    """What is drawn of each stage, in the order of the graph: requests, or work where there are none."""
    stages: dict[str, _Stage] = defaultdict(_Stage)
    slots: dict[str, Slots] = defaultdict(Slots)
    for call in sorted(calls, key=lambda call: call.begun):  # so that as few lanes as possible are used
        kind = FAILED if call.outcome == "failed" else call.role
        stages[call.stage].add(kind, slots[call.stage].take(call.begun, call.ended), call.begun, call.ended)
    asking = set(stages)
    for span in tables.of(SpanRow):
        if span.stage not in asking and span.taken is not None and span.worker is not None:
            stages[span.stage].add(WORK, span.worker, span.taken, seconds if span.done is None else span.done)
    busy = {name: sum(end - begin for _, _, begin, end in stage.bars) for name, stage in stages.items()}
    shown_stages = [name for name in stages if name in asking or busy[name] >= NOTHING * seconds]
    graph = {row.stage: row.place for row in tables.of(StageRow)}
    around = {"init": -1, "finish": len(graph)}
    return {name: stages[name] for name in sorted(shown_stages, key=lambda name: {**around, **graph}.get(name, 0))}


def _height(stage: _Stage) -> float:
    """How high a stage is drawn: one of many lanes higher than one of few, and all high enough for a name."""
    return max(1.0, sqrt(stage.lanes))


def _draw_stages(
    axes: Axes, stages: Mapping[str, _Stage], heights: Sequence[float], colours: Mapping[str, str], size: float
) -> None:
    """Draw all stages, the first one on top, each with its bars in lanes of the same height."""
    places, bottom = list[float](), 0.0
    bars: dict[str, list[Sequence[tuple[float, float]]]] = defaultdict(list)
    for stage, height in zip(stages.values(), heights, strict=True):
        lane_height = height / stage.lanes
        for kind, lane, begun, ended in stage.bars:
            low = bottom + lane * lane_height
            bars[kind].append(_box(begun / size, ended / size, low, low + lane_height * 0.92))
        axes.axhspan(bottom, bottom + height, color=PALE, linewidth=0, alpha=0.5)
        places.append(bottom + height / 2)
        bottom += height + 0.25
    many = sum(map(len, bars.values())) > MOST_SHAPES
    for kind, boxes in bars.items():
        axes.add_collection(PolyCollection(boxes, facecolors=colours[kind], linewidths=0, rasterized=many))
    axes.set_ylim(bottom - 0.25, 0)
    axes.set_yticks(places, [f"{shown(name)} ({stage.lanes})" for name, stage in stages.items()])
    axes.set_ylabel("stage\n(most at once)")
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    patches = [Patch(color=colour, label=shown(kind)) for kind, colour in colours.items() if kind in bars]
    axes.legend(handles=patches, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, handlelength=1.0)


def _draw_in_flight(
    axes: Axes, rates: Rates, colours: Mapping[str, str], looks: Sequence[ServerRow], size: float
) -> None:
    """Draw the requests in flight by role, on top of one another, and the load that the server reported."""
    below = [0.0] * STEPS
    for role, colour in colours.items():
        above = [low + value for low, value in zip(below, rates.in_flight[role], strict=True)]
        axes.stairs(above, _edges(rates, size), baseline=below, fill=True, color=colour)
        below = above
    if looks:
        times = [look.seconds / size for look in looks]
        axes.plot(times, [look.running for look in looks], color=DARK, lw=0.7, label="running in the server")
        axes.plot(times, [look.waiting for look in looks], color=DARK, lw=0.7, ls=":", label="waiting in the server")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.95), ncols=2)
    axes.set_ylabel("requests\nin flight")
    whole_numbers(axes)


def _edges(rates: Rates, size: float) -> list[float]:
    """Where the steps begin and the last one ends."""
    return [rates.width * step / size for step in range(STEPS + 1)]


def _box(left: float, right: float, low: float, high: float) -> Sequence[tuple[float, float]]:
    return [(left, low), (right, low), (right, high), (left, high)]
