"""Whole runs of all algorithms with replies in odd forms: they go as with plain ones, and nothing of a draft is taken."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.support.depth import LONG
from tests.support.odd_forms import AMBIGUOUS, FORMS
from tests.support.odd_replies import SENTINEL, Form
from tests.support.odd_runs import SETTINGS, Ran, drawn, evolve

_CASES: dict[str, Form] = {
    **{f"mixed {number}": drawn([*FORMS.values()], str(number)) for number in range(3)},
    **(FORMS if LONG else {}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@cache
def plain(name: str, folder: Path) -> Ran:
    return evolve(name, None, pytest.MonkeyPatch(), folder)


@pytest.mark.parametrize("form", _CASES)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_goes_as_with_plain_replies(name: str, form: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, before = evolve(name, _CASES[form], monkeypatch, folder), plain(name, folder)
    assert not [text for text in ran.texts() if SENTINEL in text]
    assert ran.unread == before.unread
    assert ran.decisions == before.decisions


@pytest.mark.parametrize("form", AMBIGUOUS)
@pytest.mark.parametrize("name", ["gepa", "combee", "ace", "best_of_n", "context_evolve"])
def test_what_has_two_meanings_is_asked_for_once_more_and_never_guessed(
    name: str, form: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = evolve(name, AMBIGUOUS[form], monkeypatch, folder, {"proposals": 6, "evaluations": 30, "rollouts": 150})
    if not ran.forms:
        return
    assert not [text for text in map(str, ran.decisions) if SENTINEL in text]
    refused = [event.data for event in ran.events if event.kind == "reply.unparsable"]
    reasons = Counter(str(data["reason"]) for data in refused)
    assert set(reasons) <= {"ambiguous", "several_places", "not_found"}
    assert 0 < sum(bool(data.get("again")) for data in refused) < len(refused)
