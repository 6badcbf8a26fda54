"""A task with another seed is the same task in everything else."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import flowevolve as fe
from flowevolve._util.errors import InputError
from flowevolve.core.task import Measured, TellsTrust
from flowevolve.problems.catalog import PROBLEMS
from flowevolve.programs import ProgramTask
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.other_seed import with_seed


def test_a_task_of_prompts_begins_with_the_other_text() -> None:
    task = house_style_task()
    other = with_seed(task, {"system_prompt": "Be brief."}, "here")
    assert dict(other.seed()) == {"system_prompt": "Be brief."}
    assert dict(task.seed()) != dict(other.seed())
    assert (other.name, other.data, type(other).__name__) == (task.name, task.data, type(task).__name__)


def test_a_task_of_programs_stays_one() -> None:
    task = ProgramTask(PROBLEMS.make("autocorrelation_3", {}, "task"))
    (file,) = task.seed()
    other = with_seed(task, {file: "pass"}, "here")
    assert isinstance(other, ProgramTask)
    assert isinstance(other, Measured)
    assert isinstance(other, TellsTrust)
    assert other.seed() == fe.Artifact({file: "pass"}, "program")


def test_so_does_one_that_has_slots() -> None:
    @dataclass(slots=True)
    class Slotted:
        data: fe.Dataset
        name: str = "slotted"

        def seed(self) -> fe.Artifact:
            return fe.Artifact({"prompt": "first"})

        async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: fe.ChatModel) -> fe.Rollout:
            raise NotImplementedError

    assert dict(with_seed(Slotted(house_style_task().data), {"prompt": "second"}, "here").seed()) == {
        "prompt": "second"
    }


def test_texts_of_other_components_are_refused() -> None:
    with pytest.raises(InputError, match=r"^branch\.texts has texts for 'prompt', but task 'house_style' begins with"):
        with_seed(house_style_task(), {"prompt": "Be brief."}, "branch.texts")
