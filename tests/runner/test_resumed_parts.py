"""Tasks and algorithms that a run was given as objects or that have changed, when it is gone on with."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.runner.result import Result
from flowevolve.tasks.house_style import house_style_task
from tests.support.resuming import config, resume, rules, run


def test_what_was_given_is_known_though_the_run_was_paused_before_it_began(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))

    async def go() -> None:
        async with fe.open_run(config(), task=task, out=tmp_path) as engine:
            engine.pause()
            async for event in engine.events():
                if event.kind == "run.start":
                    engine.unpause()

    clock.run(go, clock="virtual")
    with pytest.raises(InputError, match="task was given in Python"):
        resume(tmp_path, "budget.proposals=12")


def test_a_task_given_as_an_object_has_to_be_given_again(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
    budget = fe.Budget(proposals=4)
    fe.optimize(task, budget=budget, clock="virtual", out=tmp_path)
    with pytest.raises(InputError, match="task was given in Python"):
        resume(tmp_path, "budget.proposals=6")
    result, _ = resume(tmp_path, "budget.proposals=6", task=task)
    assert result.report.spent.proposals >= 6


def test_a_run_goes_on_with_the_task_it_began_with_alone(tmp_path: Path) -> None:
    fe.optimize(rules(6), budget=fe.Budget(proposals=4), clock="virtual", out=tmp_path)
    said = (
        r"scores are of task 'house_style' with \d+ validation examples \(digest \w+\), not of task 'house_style' with"
    )
    for other in (rules(6, seed=2), rules(9)):
        with pytest.raises(InputError, match=said):
            resume(tmp_path, "budget.proposals=6", task=other)
    renamed = rules(6)
    renamed.name = "another"
    with pytest.raises(InputError, match="not of task 'another' with"):
        resume(tmp_path, "budget.proposals=6", task=renamed)
    turned = rules(6)
    turned.data = replace(turned.data, val=turned.data.val[::-1])
    result, _ = resume(tmp_path, "budget.proposals=6", task=turned)
    assert result.report.spent.proposals >= 6


def test_a_task_that_was_named_is_not_taken_as_an_object(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match="task was named in its configuration"):
        resume(tmp_path, "budget.proposals=12", task=house_style_task())
    with pytest.raises(InputError, match="scores are of task 'house_style' with"):
        resume(tmp_path, "budget.proposals=12", task=rules(6))


def test_an_object_has_to_be_given_again_though_the_run_never_began(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))

    async def go() -> None:
        await fe.run(config(start={"run": str(tmp_path / "nothing")}), task=task, out=tmp_path / "run")

    with pytest.raises(InputError, match="no such run directory"):
        clock.run(go, clock="virtual")
    with pytest.raises(InputError, match="task was given in Python"):
        resume(tmp_path / "run", "start=null")


ALGORITHM = """
from tests.support.own_algorithm import Climb

MOST = 3

class Mine(Climb):
    name = "mine"

    async def update(self, item, context):
        await super().update(item, context)  # {comment}
        assert MOST {sign} 0
"""


@pytest.mark.parametrize(
    ("comment", "sign", "told"), [("kept", ">", False), ("another comment", ">", False), ("kept", ">=", True)]
)
def test_an_algorithm_of_ones_own_whose_code_has_changed_is_told_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, sign: str, *, told: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module, notes = tmp_path / "mine_to_change.py", list[str]()

    def write(comment: str, sign: str) -> None:
        module.write_text(ALGORITHM.format(comment=comment, sign=sign))
        monkeypatch.delitem(sys.modules, module.stem, raising=False)

    async def go_on() -> Result:
        return await fe.resume(tmp_path / "run", changes=["budget.proposals=12"], note=notes.append)

    write("kept", ">")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    run(tmp_path / "run", algorithm={"name": f"{module.stem}:Mine"}, staleness={}, speculation={})
    write(comment, sign)
    assert clock.run(go_on, clock="virtual").proposals == 12
    assert [f"{tmp_path / 'run'}: the code of algorithm has changed since the run began" in each for each in notes] == (
        [True] if told else []
    )
