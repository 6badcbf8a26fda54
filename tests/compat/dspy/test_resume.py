"""A ``log_dir``: what was evaluated is not evaluated again, and no key gets into it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.datasets.dataset import Dataset
from dspy.teleprompt.gepa.gepa_utils import DspyAdapter

from flowevolve._util.errors import InputError
from flowevolve.compat.dspy import GEPA
from tests.compat.dspy.programs import TRAIN, VAL, Metric, Program, Twice, model, texts

pytestmark = pytest.mark.filterwarnings("default")  # dspy's own dependencies warn of each other


class GoneError(Exception):
    """The machine is gone."""


@pytest.fixture
def lm() -> Iterator[Any]:
    made = model()
    with dspy.context(lm=made):
        yield made


def compiled(log_dir: Path | None, student: Any, **arguments: Any) -> Any:
    given: dict[str, Any] = {"max_metric_calls": 130, "reflection_lm": model(), "track_stats": True, "num_threads": 6}
    data = {"trainset": arguments.pop("trainset", TRAIN), "valset": arguments.pop("valset", VAL)}
    given |= {"metric": Metric(), "log_dir": None if log_dir is None else str(log_dir), **arguments}
    return GEPA(**given).compile(student, **data)


def interrupt(monkeypatch: pytest.MonkeyPatch, calls: int, log_dir: Path, student: Any, **arguments: Any) -> None:
    """Compile until dspy's adapter is called for the nth time."""
    evaluate, left = DspyAdapter.evaluate, iter(range(calls))

    def failing(self: Any, *given: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise GoneError
        return evaluate(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(DspyAdapter, "evaluate", failing)
        with pytest.raises(GoneError):
            compiled(log_dir, student, **arguments)


def accepted(program: Any) -> list[dict[str, str]]:
    return [texts(candidate) for candidate in program.detailed_results.candidates]


@pytest.mark.parametrize("calls", [1, 2, 3, 6, 11])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    lm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    expected = compiled(None, Program(), max_in_flight=1)
    whole = sorted(lm.engine.asked)
    lm.engine.asked.clear()
    interrupt(monkeypatch, calls, tmp_path, Program(), max_in_flight=1)
    told = compiled(tmp_path, Program(), max_in_flight=1)
    assert sorted(lm.engine.asked) == whole
    assert accepted(told) == accepted(expected)
    assert told.detailed_results.val_subscores == expected.detailed_results.val_subscores


def test_the_generator_that_picks_traces_is_given_back(
    lm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    take = DspyAdapter.set_adapter_state
    interrupt(monkeypatch, 16, tmp_path, Twice())

    def note(self: Any, state: Any) -> None:
        given.append(state)
        take(self, state)

    monkeypatch.setattr(DspyAdapter, "set_adapter_state", note)
    program = compiled(tmp_path, Twice())
    assert given
    assert len(accepted(program)) > 1


def test_a_run_that_has_ended_ends_again_without_a_call(lm: Any, tmp_path: Path) -> None:
    reflector = model()
    first = compiled(tmp_path, Program(), reflection_lm=reflector)
    asked = len(lm.engine.asked), len(reflector.engine.asked)
    again = compiled(tmp_path, Program(), reflection_lm=reflector)
    assert (len(lm.engine.asked), len(reflector.engine.asked)) == asked
    assert again.detailed_results.to_dict() == first.detailed_results.to_dict()


def test_keys_of_models_stay_out_of_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-never-on-disk"
    here = model()
    here.train_kwargs = {"api_key": secret}  # where an engine's key would stand, a model of this engine takes none
    student = Program()
    student.set_lm(here)
    with dspy.context(lm=here):
        interrupt(monkeypatch, 6, tmp_path, student)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found
    assert not [path for path in found if secret.encode() in path.read_bytes()]


def test_a_run_of_dspys_own_is_not_gone_on_with(lm: Any, tmp_path: Path) -> None:
    (tmp_path / "gepa_state.bin").touch()
    with pytest.raises(InputError, match="gepa itself"):
        compiled(tmp_path, Program())


def example(question: str) -> Any:
    return dspy.Example(question=question, answer="?").with_inputs("question")


@pytest.mark.parametrize("name", ["trainset", "valset"])
def test_other_examples_of_the_same_number_are_refused(lm: Any, tmp_path: Path, name: str) -> None:
    compiled(tmp_path, Program())
    lm.engine.asked.clear()
    same = {"trainset": [example(each.question) for each in TRAIN], "valset": [example(each.question) for each in VAL]}
    compiled(tmp_path, Program(), **same)
    with pytest.raises(InputError, match=f"{name} has changed since the run began"):
        compiled(tmp_path, Program(), **{**same, name: [example("other"), *same[name][1:]]}, max_metric_calls=200)
    assert lm.engine.asked == []


def test_names_that_dspys_data_sets_give_their_rows_make_no_others_of_them(lm: Any, tmp_path: Path) -> None:
    """They are drawn anew in each process."""

    class Questions(Dataset):
        def __init__(self) -> None:
            super().__init__(train_size=3)
            self._train = [{"question": f"t{number}", "answer": "?"} for number in range(3)]

    def trainset() -> list[Any]:
        return [each.with_inputs("question") for each in Questions().train]

    assert trainset()[0].dspy_uuid != trainset()[0].dspy_uuid
    compiled(tmp_path, Program(), trainset=trainset())
    asked = len(lm.engine.asked)
    compiled(tmp_path, Program(), trainset=trainset())
    assert len(lm.engine.asked) == asked


def test_what_can_not_be_gone_on_with_is_told_by_the_names_of_dspys_arguments(lm: Any, tmp_path: Path) -> None:
    compiled(tmp_path, Program())
    with pytest.raises(InputError, match=rf"^log_dir: the run in {tmp_path} can't go on .* seed is 3, but was 0"):
        compiled(tmp_path, Program(), seed=3)


def test_how_a_run_that_has_ended_can_go_on_is_told_by_the_names_of_dspys_arguments(
    lm: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    compiled(tmp_path, Program())
    compiled(tmp_path, Program())
    assert "raise that limit with max_metric_calls, max_full_evals or auto" in caplog.text


def test_what_makes_a_run_of_few_threads_faster_is_told_by_the_name_of_dspys_argument(
    lm: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    compiled(None, Program(), num_threads=2)
    assert "a higher num_threads is faster" in caplog.text
    assert "adapter" not in caplog.text


def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    return 1.0


class Other(Program):
    def forward(self, question: str) -> dspy.Prediction:
        return super().forward(question + "?")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metric": metric}, "the code of metric"),
        ({"failure_score": -1.0}, "failure_score"),
        ({"student": Other()}, "the code of student.forward"),
        ({"instruction_proposer": lambda **_: {}}, "instruction_proposer"),
    ],
)
def test_what_has_changed_of_metric_and_program_is_told(
    lm: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, given: Any, said: str
) -> None:
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    compiled(tmp_path, Program())
    compiled(tmp_path, Program())
    assert "has changed" not in caplog.text
    compiled(tmp_path, **{"student": Program(), **given})
    assert f"{said} has changed since the run began" in caplog.text
