"""gepa's progress bar: metric calls, on standard error."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Bar:
    """A gepa callback, shown while it is entered. ``most`` metric calls make it full; None: nobody knows."""

    def __init__(self, most: int | None) -> None:
        columns = (TextColumn("metric calls"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task("metric calls", total=most)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_budget_updated(self, event: Mapping[str, int]) -> None:
        self._progress.update(self._task, completed=event["metric_calls_used"])
