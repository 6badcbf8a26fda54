"""A corpus of replies with faults, written by hand: what the readers make of each is what a person would."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.kinds import KINDS, Kind, Recorded, read_recorded

FOLDER = Path(__file__).parent / "faults"


@dataclass(frozen=True)
class Case:
    """A reply with what it comes to, or with the reason for which it is refused."""

    name: str
    fault: str
    kind: Kind
    recorded: Recorded
    result: JSON
    reason: str | None


def cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        parents = content.get("parents", {})
        for number, row in enumerate(content["case"], 1):
            parent = row.get("parent")
            yield Case(
                f"{file.stem}-{number}-{row['fault'].replace(' ', '_')}",
                row["fault"],
                row["kind"],
                Recorded(row["reply"], parents.get(parent, parent), row.get("language")),
                row.get("result"),
                row.get("reason"),
            )


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_read_as_a_person_reads_it(case: Case) -> None:
    assert (case.result is None) is not (case.reason is None), "a case has either a result or a reason"
    if case.reason is None:
        assert read_recorded(case.kind, case.recorded) == case.result
        return
    with pytest.raises(UnparsableReplyError, match=r"\w+ \w+") as caught:
        read_recorded(case.kind, case.recorded)
    assert caught.value.reason == case.reason


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len(CASES) >= 150
    assert len({case.fault for case in CASES}) >= 12
    assert {case.kind for case in CASES} == set(KINDS)
