"""What the server's log says about one run, by the process that sent the request (see `bench.durability.server`)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from bench.durability.runs import CONCURRENCY


class ServerLog:
    """The requests of one run. Each of its processes is named ``RUN/NUMBER``."""

    def __init__(self, log: Path, run: str) -> None:
        self._lines: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for line in log.read_text(encoding="ascii").splitlines():
            what, process, key = line.split(" ")
            if process.startswith(f"{run}/"):
                self._lines[process].append((what, key))

    def begun_after(self, process: str) -> frozenset[str]:
        """The keys of the requests that later processes of the run made."""
        number = int(process.rpartition("/")[2])
        return frozenset(
            key
            for name, lines in self._lines.items()
            if int(name.rpartition("/")[2]) > number
            for what, key in lines
            if what == "begun"
        )

    def finished(self, process: str) -> dict[str, int]:
        """The keys of the requests of a process that were answered, each with the number of calls it began after the
        answer.

        If it began more calls than may be in flight at a time, the answer has certainly arrived.
        """
        later, finished = 0, dict[str, int]()
        for what, key in reversed(self._lines[process]):
            later += what == "begun"
            if what == "ended":
                finished[key] = later
        return finished

    def in_flight(self, process: str, kept: frozenset[str]) -> int:
        """How many calls a process had begun that are not in its journal and that it had not cancelled.

        A kill cancels the calls in flight, too. So the process itself has cancelled only those after which it began
        more calls than may be in flight at a time.
        """
        later, last = 0, dict[str, tuple[str, int]]()
        for what, key in reversed(self._lines[process]):
            last.setdefault(key, (what, later))
            later += what == "begun"
        open_calls = [key for key, (what, after) in last.items() if what != "gone" or after <= CONCURRENCY]
        return len(set(open_calls) - kept)
