"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere. Only events are needed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, cast

from rich.console import Console
from rich.live import Live
from rich.table import Table

from flowevolve.events import Event
from flowevolve.tally import accepts


@dataclass(slots=True)
class Tally:
    """What the events up to now add up to."""

    seconds: float = 0.0
    version: int = 0
    proposals: int = 0
    accepted: int = 0
    open_flows: int = 0
    repaired: int = 0
    stale: int = 0
    best: str | None = None
    best_score: float | None = None
    seed_score: float | None = None
    stopping: str | None = None

    def take(self, event: Event) -> None:
        self.seconds = event.time
        match event.kind:
            case "flow.open":
                self.open_flows += 1
            case "flow.close":
                self.open_flows -= 1
            case "candidate.proposed":
                new = (
                    event.data["operator"] not in ("seed", "repair", "migrate", "meta") and "adopted" not in event.data
                )
                self.proposals += new
            case "item.done":
                self.stale += event.data["reason"] == "stale"
            case "repair.judged":
                self.repaired += event.data["verdict"] == "orthogonal"
            case "pool.commit":
                self._commit(event)
            case "run.resumed":
                self._resume(event)
            case "run.stopping":
                self.stopping = str(event.data["reason"])

    def _resume(self, event: Event) -> None:
        data = event.data
        self.version, self.proposals = cast(int, data["version"]), cast(int, data["proposals"])
        self.accepted, self.open_flows = cast(int, data["accepted"]), cast(int, data["flows"])
        self.best, self.best_score = cast("str | None", data["best"]), cast("float | None", data["best_score"])

    def _commit(self, event: Event) -> None:
        version, best, score = event.data["version"], event.data["best"], event.data["best_score"]
        self.version = version if isinstance(version, int) else self.version
        self.best = str(best) if best is not None else None
        self.best_score = float(score) if isinstance(score, int | float) else None
        if version == 1:
            self.seed_score = self.best_score
        if version == 1 or event.data.get("stage") == "init":
            return
        changes = event.data["changes"]
        for change in changes if isinstance(changes, list) else []:
            self.accepted += isinstance(change, dict) and accepts(change)


class Progress(Protocol):
    """Shows the progress of a run while it lasts. ``event`` is an event sink."""

    def event(self, event: Event) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class Lines:
    """Writes a line for each commit to the pool that changes the best candidate, and one when the run is to stop."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._tally = Tally()

    def event(self, event: Event) -> None:
        before = self._tally.best
        self._tally.take(event)
        tally = self._tally
        if event.kind == "pool.commit" and tally.best != before:
            self._write(
                f"{tally.seconds:9.1f} s  best {_score(tally.best_score)} ({tally.best})  version {tally.version}"
                f"  proposals {tally.proposals}  accepted {tally.accepted}"
            )
        elif event.kind == "run.stopping":
            self._write(f"{tally.seconds:9.1f} s  stopping: {tally.stopping}; {tally.open_flows} flows to finish")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class LiveTable:
    """Shows a table that is redrawn a few times a second."""

    def __init__(self, console: Console, title: str) -> None:
        self._tally = Tally()
        self._title = title
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=4)

    def event(self, event: Event) -> None:
        self._tally.take(event)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def _table(self) -> Table:
        tally = self._tally
        minutes = tally.seconds / 60
        rate = f"{tally.proposals / minutes:.1f}/min" if minutes > 0 else "-"
        state = f"stopping: {tally.stopping}" if tally.stopping else "running"
        table = Table(title=self._title, show_header=False, title_justify="left")
        table.add_row("state", f"{state}, {tally.seconds:.0f} s, {tally.open_flows} flows open")
        table.add_row("best", f"{_score(tally.best_score)} ({tally.best}); seed {_score(tally.seed_score)}")
        table.add_row(
            "proposals", f"{tally.proposals} ({rate}), accepted {tally.accepted}, pool version {tally.version}"
        )
        table.add_row("stale", f"discarded {tally.stale}, repaired {tally.repaired}")
        return table


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.4f}"
