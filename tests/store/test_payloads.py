"""Payloads come back equal; artifacts that are in the journal are named, not copied."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import pytest

from flowevolve.artifact import Artifact
from flowevolve.errors import StorageError
from flowevolve.pool import Candidate
from flowevolve.stages.payloads import Proposed
from flowevolve.store.payloads import dump, load

LONG = "a text that is not in the pickle " * 50
KNOWN, NEW = Artifact({"p": LONG}), Artifact({"p": "short", "q": "\ud800"}, "program")


@dataclass(frozen=True, slots=True)
class Holder:
    value: object


@pytest.mark.parametrize(
    "value",
    [
        Holder((1, 2.5, "é\ud800", None, b"x")),
        Holder({"nested": [MappingProxyType({"a": 0.5})]}),
        Holder(NEW),
        Proposed(Candidate("c1", KNOWN, ("c0",), "rewrite", 3).scored({"e1": 0.5}), ("e1",), (0.5,)),
    ],
)
def test_what_is_loaded_is_what_was_dumped(value: object) -> None:
    data = dump(value, {KNOWN.id})
    assert load(data, {KNOWN.id: KNOWN}) == value
    assert LONG.encode() not in data


def test_an_artifact_that_is_not_journaled_yet_travels_whole() -> None:
    loaded = load(dump(NEW, {KNOWN.id}), {})
    assert isinstance(loaded, Artifact)
    assert (dict(loaded), loaded.kind, loaded.id) == (dict(NEW), NEW.kind, NEW.id)


def test_a_known_artifact_is_the_one_it_was() -> None:
    assert load(dump((KNOWN, KNOWN), {KNOWN.id}), {KNOWN.id: KNOWN}) == (KNOWN, KNOWN)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (dump(KNOWN, {KNOWN.id}), f"artifact {KNOWN.id} is not in the journal"),
        (b"\x80\x05cno_such_module\nThing\n.", "no_such_module"),
        (b"torn", "can't be loaded"),
    ],
)
def test_what_cannot_be_loaded_says_why_in_one_line(data: bytes, says: str) -> None:
    with pytest.raises(StorageError, match=says) as caught:
        load(data, {})
    assert "\n" not in str(caught.value)
