"""A session of pytest that collects the nearest tests once, and runs them for each change in a process of its own."""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Literal

import pytest

from tools.mutate.changes import Change, Source, changes_in
from tools.mutate.code_in_use import CodeInUse, marked, on_reached
from tools.mutate.forked import Forked, limit_seconds
from tools.mutate.modules import distance, room

LEAST_SECONDS = 20.0
"""A test may compute for this long, or for ten times as long as it did unchanged if that is longer."""

Outcome = Literal["killed", "timed out", "survived", "not reached"]
Place = tuple[str, int]
"""A module, and the line where a statement begins."""


class NearestTestsError(Exception):
    """There are no nearest tests, or they fail without any change."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a change: how many tests reach it, and which one noticed it."""

    change: Change
    outcome: Outcome
    tests: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class Test:
    """A test without any change: its outcome, how long it computed, and which statements it reached."""

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    seconds: float
    reached: frozenset[Place]

    def nearness(self, module: str) -> tuple[int, float]:
        """A sort key: the nearest tests come first, and of those as near, the fastest."""
        return distance(module, Path(self.name.partition("::")[0])), self.seconds


def try_changes(sources: Sequence[Source], sample: int | None, seed: int, processes: int) -> list[Verdict]:
    """Try the changes of these modules, or a sample of them.

    Raises:
        NearestTestsError: if there are no tests near to the modules, or some fail without any change.
    """
    folders = sorted({str(room(source.module)) for source in sources})
    if missing := [folder for folder in folders if not Path(folder).exists()]:
        raise NearestTestsError(f"the nearest tests are to be in {missing[0]}, and there is no such folder")
    changes = [change for source in sources for change in changes_in(source)]
    if sample is not None and sample < len(changes):
        changes = random.Random(seed).sample(changes, sample)
    session = _Session(sources, changes, processes)
    without = [f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "faulthandler")]
    known = ["-W", "ignore:Module already imported"]  # the product is imported, because its modules were looked for
    with redirect_stdout(StringIO()) as said:
        code = pytest.main([*without, *known, "-s", *folders], plugins=[session])
    if code != pytest.ExitCode.OK:
        raise NearestTestsError(session.complaint or said.getvalue())
    return session.verdicts


class _Session:
    """A plugin that takes the place of pytest's own loop over the tests."""

    def __init__(self, sources: Sequence[Source], changes: Sequence[Change], processes: int) -> None:
        self.verdicts: list[Verdict] = []
        self.complaint = ""
        self._sources = sources
        self._changes = changes
        self._processes = processes
        self._items: dict[str, pytest.Item] = {}
        self._in_use: dict[str, CodeInUse] = {}
        self._reports: list[pytest.TestReport] = []

    def pytest_collection(self) -> None:
        """Keep hypothesis from shrinking an example that fails for one change, and from keeping it and trying it with
        the next.
        """
        if "hypothesis" in sys.modules:
            from hypothesis import Phase, settings  # noqa: PLC0415 - only where the tests have it

            phases = (Phase.explicit, Phase.generate)
            settings.register_profile("mutate", settings.default, database=None, derandomize=True, phases=phases)
            settings.load_profile("mutate")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        self._items = {item.nodeid: item for item in session.items}
        gc.unfreeze()  # otherwise objects that a conftest has frozen are not found
        self._in_use = {source.module: CodeInUse(sys.modules[source.module]) for source in self._sources}
        gc.freeze()
        tests = Forked(self._run_unchanged).answer()
        failing = (
            ["the process was ended"] if tests is None else [each.name for each in tests if each.outcome == "failed"]
        )
        if tests is None or failing:
            self.complaint = f"the nearest tests fail without any change: {', '.join(failing)}"
            raise session.Failed(self.complaint)
        self._try_all([each for each in tests if each.outcome == "passed"])
        return True

    def _run_unchanged(self) -> list[Test]:
        reached: set[Place] = set()
        on_reached(reached.add)
        for source in self._sources:
            self._in_use[source.module].replace(marked(source))
        tests: list[Test] = []
        for name in self._items:
            reached.clear()
            begun = time.process_time()
            tests.append(Test(name, self._outcome(name), time.process_time() - begun, frozenset(reached)))
        return tests

    def _try_all(self, tests: Sequence[Test]) -> None:
        running: dict[Forked[str], tuple[Change, int]] = {}

        def end_one() -> None:
            ended = Forked.first_ended(list(running))
            change, count = running.pop(ended)
            by = ended.answer()
            outcome: Outcome = "timed out" if by is None else "killed" if by else "survived"
            settle(Verdict(change, outcome, count, by or ""))

        def settle(verdict: Verdict) -> None:
            self.verdicts.append(verdict)
            print(f"{len(self.verdicts)} of {len(self._changes)}: {verdict.outcome}: {verdict.change}", file=sys.stderr)

        for change in self._changes:
            nearest = sorted((each for each in tests if change.place in each.reached), key=partial(_nearness, change))
            if not nearest:
                settle(Verdict(change, "not reached", 0))
                continue
            if len(running) == self._processes:
                end_one()
            running[Forked(partial(self._failing, change, nearest))] = (change, len(nearest))
        while running:
            end_one()

    def _failing(self, change: Change, tests: Sequence[Test]) -> str:
        """The first of the tests that fails with the change; empty if none does."""
        self._in_use[change.source.module].replace(change.source.compiled(change))
        for test in tests:
            limit_seconds(max(LEAST_SECONDS, 10 * test.seconds))
            if self._outcome(test.name) == "failed":
                return test.name
        return ""

    def _outcome(self, name: str) -> Literal["passed", "failed", "skipped"]:
        """Run a test, and end all fixtures, so that what they reach counts as reached by every test that uses them."""
        self._reports.clear()
        item = self._items[name]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if any(report.failed for report in self._reports):
            return "failed"
        return "skipped" if any(report.skipped for report in self._reports) else "passed"


def _nearness(change: Change, test: Test) -> tuple[int, float]:
    return test.nearness(change.source.module)
