"""Acts, as JSON has them."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.acts import NAMES, Act, Approve, Comment, Inject, Pause, RaiseBudget, Stop, Unpause, Veto, read_act

ACTS: list[Act] = [
    Pause(),
    Pause(items=True),
    Unpause(),
    Stop(),
    RaiseBudget({"minutes": 90, "dollars": 2.5}),
    Inject({"prompt": "Answer in a word. \ud800"}, "c0"),
    Inject({"prompt": "Answer in a word."}),
    Comment("Too long.", candidate="c3"),
    Comment("The key is wrong.", example="7"),
    Veto("c3"),
    Approve("c3"),
]


@pytest.mark.parametrize("act", ACTS, ids=repr)
def test_an_act_comes_back_from_its_json(act: Act) -> None:
    assert read_act(act.to_json()) == act
    assert act.to_json()["act"] == act.act


def test_every_act_has_a_name() -> None:
    assert {act.act for act in ACTS} == set(NAMES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1], r"act: \[1\] is no act; give an object with the field act, one of pause, unpause"),
        ({"candidate": "c3"}, "act: None is no act"),
        ({"act": "jump"}, "act: 'jump' is no act"),
        ({"act": ["veto"]}, r"act: \['veto'\] is no act"),
        ({"act": "veto"}, "veto: candidate is missing"),
        ({"act": "veto", "candidate": 3}, "veto: candidate is 3, but has to be a text"),
        ({"act": "stop", "now": True}, "stop: now: unknown key$"),
        ({"act": "comment", "text": "Good."}, "comment: a comment is about either a candidate or an example"),
        ({"act": "comment", "text": "Good.", "candidate": "c1", "example": "1"}, "comment: a comment is about either"),
        ({"act": "comment", "text": " ", "candidate": "c1"}, "comment: the text is empty"),
        ({"act": "inject", "texts": {"prompt": " \n"}}, "inject: the text of 'prompt' is empty"),
        ({"act": "inject", "texts": {}}, "inject: no text is given; give that of one component or more"),
        ({"act": "raise_budget", "limits": {}}, "raise_budget: no limit is given"),
        ({"act": "raise_budget", "limits": {"minutes": float("inf")}}, "no finite number"),
        ({"act": "raise_budget", "limits": {"rollouts": 10**400}}, "no finite number"),
        ({"act": "raise_budget", "limits": {"minutes": -(10**400)}}, "no finite number"),
        ({"act": "raise_budget", "limits": {"hours": 1e308}}, "no finite number"),
        ({"act": "raise_budget", "limits": {"proposal": 9}}, "raise_budget: proposal: unknown key; did you mean"),
        ({"act": "raise_budget", "limits": {"tokens": -1}}, "raise_budget: tokens is -1, but has to be above 0"),
    ],
)
def test_what_is_no_act_is_told_in_a_line(data: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_act(data)
    assert "\n" not in str(caught.value)
