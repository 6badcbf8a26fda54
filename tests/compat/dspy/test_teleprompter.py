"""What users of dspy.GEPA give: programs of several predictors, metrics with feedback, settings, proposers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.utils.callback import BaseCallback

from flowevolve._util.errors import InputError, TaskFailedError
from flowevolve.compat.dspy import GEPA
from tests.compat.dspy.programs import TRAIN, VAL, Metric, Program, Twice, model, texts

pytestmark = pytest.mark.filterwarnings("default")  # dspy's own dependencies warn of each other


def compile_with(metric: Any = None, *, teleprompter: Any = GEPA, student: Any = None, **arguments: Any) -> Any:
    given = {"max_metric_calls": 150, "reflection_lm": model(), "track_stats": True, "num_threads": 6, **arguments}
    made = teleprompter(metric or Metric(), **given)
    return made.compile(student or Program(), trainset=TRAIN, valset=VAL)


def judging(returned: Any) -> Any:
    return lambda gold, pred, trace=None, name=None, pred_trace=None: returned


@pytest.fixture
def lm() -> Iterator[Any]:
    made = model()
    with dspy.context(lm=made):
        yield made


def accepted(program: Any) -> list[dict[str, str]]:
    return [texts(candidate) for candidate in program.detailed_results.candidates]


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("program", [Program, Twice])
def test_one_iteration_at_a_time_it_is_dspys_own(lm: Any, merge: bool, program: type[Program]) -> None:
    given = {"use_merge": merge, "track_best_outputs": True}
    expected = compile_with(teleprompter=dspy.GEPA, student=program(), **given)
    # dspy's own ends with the iteration that passes the limit, which ours would not begin: its calls are our limit.
    calls = expected.detailed_results.total_metric_calls
    told = compile_with(max_in_flight=1, student=program(), max_metric_calls=calls, **given)
    assert len(accepted(expected)) > 2
    assert texts(told) == texts(expected)
    assert told.detailed_results.to_dict() == expected.detailed_results.to_dict()


def test_many_at_a_time_improve_both_predictors(lm: Any) -> None:
    metric = Metric()
    program = compile_with(metric, max_metric_calls=400)
    stats = program.detailed_results
    assert isinstance(program, Program)
    assert stats.val_aggregate_scores[stats.best_idx] > stats.val_aggregate_scores[0]
    assert texts(program) == texts(stats.best_candidate)
    assert {
        name for each in accepted(program)[1:] for name, text in each.items() if text.startswith("Instruction")
    } == {
        "draft",
        "reply",
    }
    assert {field.name for field in fields(stats)} <= set(stats.to_dict()) | {"best_candidate"}


def test_the_metric_is_told_which_predictor_its_feedback_is_for(lm: Any) -> None:
    metric = Metric()
    reflector = model()
    compile_with(metric, reflection_lm=reflector)
    assert set(metric.predictors) == {None, "draft", "reply"}
    outputs = {"draft": "notes", "reply": "answer"}
    for name, [(predictor, inputs, output)] in metric.traced:
        assert outputs[name] in output
        assert "question" in inputs
        assert isinstance(predictor, dspy.Predict)
    assert all("draft: " in prompt or "reply: " in prompt for prompt in reflector.engine.asked)


def test_a_metric_may_be_a_plain_number(lm: Any) -> None:
    reflector = model()
    compile_with(judging(0.5), reflection_lm=reflector, max_metric_calls=40)
    assert reflector.engine.asked
    assert all("The score is 0.5." in prompt for prompt in reflector.engine.asked)


def test_settings_of_the_context_reach_every_thread() -> None:
    started: list[Any] = []

    class Watching(BaseCallback):
        def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            started.append(instance)

    metric, here, reflector = Metric(), model(), model()
    here.model = "here"
    with dspy.context(lm=here, callbacks=[Watching()]):
        compile_with(metric, reflection_lm=reflector)
    assert metric.models == {"here"}
    assert {id(each) for each in started} == {id(here), id(reflector)}
    assert len(started) == len(here.engine.asked) + len(reflector.engine.asked)


def test_no_more_requests_are_open_than_there_are_threads(lm: Any) -> None:
    compile_with(num_threads=4, adapter_concurrency=2, max_in_flight=8)
    assert lm.engine.most <= 4
    lm.engine.most = 0
    compile_with(num_threads=1)
    assert lm.engine.most == 1


def test_it_works_where_an_event_loop_runs(lm: Any) -> None:
    async def main() -> Any:
        return compile_with()

    assert isinstance(asyncio.run(main()), Program)


def test_a_program_that_raises_scores_as_failed(lm: Any) -> None:
    class Raising(Program):
        def forward(self, question: str) -> Any:
            if question in ("t1", "t4", "v2"):
                raise LookupError(question)
            return super().forward(question)

    program = compile_with(student=Raising(), failure_score=-1.0)
    stats = program.detailed_results
    assert len(stats.candidates) > 1
    assert {scores[2] for scores in stats.val_subscores} == {-1.0}


def test_answers_that_do_not_parse_can_be_fed_back() -> None:
    lm = model(spoil=lambda prompt: "no fields" if "t2" in prompt or "t3" in prompt else None)
    reflector = model()
    with dspy.context(lm=lm):
        compile_with(reflection_lm=reflector, add_format_failure_as_feedback=True)
    assert any("no fields" in prompt for prompt in reflector.engine.asked)


def test_a_proposer_of_the_users_own_is_not_called_twice_at_once(lm: Any) -> None:
    inside = [0, 0]

    def propose(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        inside[0] += 1
        inside[1] = max(inside)
        made = {name: f"{candidate[name]} {len(reflective_dataset[name])}" for name in components_to_update}
        inside[0] -= 1
        return made

    program = compile_with(instruction_proposer=propose, reflection_lm=None, component_selector="all")
    assert inside[1] == 1
    assert len(program.detailed_results.candidates) >= 1


def test_arguments_of_gepas_go_through(lm: Any) -> None:
    class First:
        def next_minibatch_ids(self, loader: Any, state: Any) -> list[int]:
            return [0]

    metric = Metric()
    more = {"batch_sampler": First(), "mode": "sync", "chunk_size": 2}
    program = compile_with(metric, reflection_minibatch_size=None, gepa_kwargs=more)
    assert len(program.detailed_results.candidates) > 1
    assert {pred_trace[1]["question"] for _, [pred_trace] in metric.traced} == {"t0"}


def test_the_constructor_is_dspys_with_ours_behind() -> None:
    theirs = set(inspect.signature(dspy.GEPA.__init__).parameters)
    given = GEPA(Metric(), reflection_lm=model(), auto="light", adapter_concurrency=2)
    assert isinstance(given, dspy.GEPA)
    assert theirs - {"self", "metric", "instruction_proposer", "code_proposer"} <= set(vars(given)) | {"gepa_kwargs"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_metric_calls": None}, "Exactly one of"),
        ({"reflection_lm": None}, "reflection language model"),
        ({"nonsense": 1}, "nonsense"),
        ({"metric": lambda gold, pred: 0.0}, "five arguments"),
        (
            {"num_threads": 2, "adapter_concurrency": 3},
            "adapter_concurrency is 3, but has to be from 1 to 2, the number of threads",
        ),
        ({"adapter_concurrency": 0}, "adapter_concurrency is 0, but has to be"),
        ({"max_in_flight": 0}, "max_in_flight is 0, but has to be at least 1"),
        ({"use_wandb": True}, "use_wandb needs wandb, which is not installed"),
        ({"gepa_kwargs": {"seed": 1}}, "gepa_kwargs: seed can't be given there"),
        ({"gepa_kwargs": {"task_lm": "x"}}, "gepa_kwargs: task_lm can't be given there"),
        ({"gepa_kwargs": {"frontier": "x"}}, "gepa_kwargs: unknown name 'frontier'; did you mean 'frontier_type'"),
        ({"candidate_selection_strategy": "parato"}, "did you mean 'pareto'"),
        ({"max_metric_calls": None, "auto": "lite"}, "auto: unknown name 'lite'; did you mean 'light'"),
        ({"num_threads": "8"}, "num_threads is '8'; give a whole number"),
        ({"num_threads": np.int64(-1)}, "num_threads is -1, but has to be at least 1"),
        ({"gepa_kwargs": 3}, "gepa_kwargs is 3; give a mapping"),
        ({"log_dir": 3}, "log_dir is 3; give the path of a directory"),
        ({"perfect_score": "1"}, "perfect_score is '1'; give a number"),
        ({"seed": None}, "seed is None; give a whole number of at least 0"),
        ({"reflection_lm": "openai/gpt"}, "reflection_lm is the text 'openai/gpt'; give dspy.LM('openai/gpt')"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(lm: Any, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_with(**wrong)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_data_and_programs_that_can_not_be_used_are_refused(lm: Any) -> None:
    gepa = GEPA(Metric(), reflection_lm=model(), max_metric_calls=10)
    with pytest.raises(InputError, match="trainset is empty"):
        gepa.compile(Program(), trainset=[])
    with pytest.raises(InputError, match="teacher"):
        gepa.compile(Program(), trainset=TRAIN, teacher=Program())
    with pytest.raises(InputError, match="student: Module has no predictor"):
        gepa.compile(dspy.Module(), trainset=TRAIN)


@pytest.mark.parametrize(("budget", "calls"), [({"max_full_evals": 5}, 60), ({"auto": "light"}, None)])
def test_budgets_are_counted_as_dspy_does(lm: Any, budget: dict[str, Any], calls: int | None) -> None:
    given = {"max_metric_calls": None, "max_in_flight": 1, **budget}
    if calls is None:
        calls = dspy.GEPA(Metric(), auto="light", reflection_lm=model()).auto_budget(2, 6, len(VAL))
    program = compile_with(**given, instruction_proposer=lambda **_: {}, reflection_lm=None)
    assert calls - 12 < program.detailed_results.total_metric_calls <= calls


async def asynchronous(gold: Any, pred: Any, trace: Any = None, name: Any = None, pred_trace: Any = None) -> float:
    return 0.5


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (judging("0.5"), "'0.5' (str)"),
        (judging(None), "None (NoneType)"),
        (judging({"score": 1.0}), "{'score': 1.0} (dict)"),
        (judging((0.5, "good")), "(0.5, 'good') (tuple)"),
        (judging(float("nan")), "nan (float)"),
        (judging(dspy.Prediction(feedback="good")), "a Prediction whose score is None"),
        (judging(dspy.Prediction(score="high", feedback="good")), "a Prediction whose score is 'high' (str)"),
        (asynchronous, "(coroutine)"),
    ],
)
def test_a_metric_that_returns_no_score_is_told_with_the_row(lm: Any, metric: Any, said: str) -> None:
    with pytest.raises(
        InputError, match=r"^metric returned .*, but has to return a number, or a dspy\.Prediction"
    ) as caught:
        compile_with(metric)
    assert said in str(caught.value)
    assert "'question': 'v" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("returned", [np.True_, dspy.Prediction(score=np.True_, feedback="good")])
def test_a_bool_of_numpy_is_taken_as_one(lm: Any, returned: Any) -> None:
    assert compile_with(judging(returned), max_metric_calls=40).detailed_results.val_aggregate_scores == [1.0]


def test_a_score_of_numpy_is_a_number(lm: Any) -> None:
    assert compile_with(judging(np.float32(0.5)), max_metric_calls=40).detailed_results.val_aggregate_scores == [0.5]


def raising(gold: Any, pred: Any, trace: Any = None, name: Any = None, pred_trace: Any = None) -> float:
    raise KeyError("reference")


class Broken(Program):
    def forward(self, question: str) -> Any:
        raise LookupError("no index")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metric": raising}, "KeyError: 'reference'"),
        ({"student": Broken()}, "LookupError: no index"),
        ({"student": Broken(), "gepa_kwargs": {"raise_on_exception": False}}, "LookupError: no index"),
    ],
)
def test_a_metric_or_a_program_that_fails_on_every_row_ends_the_run(lm: Any, given: dict[str, Any], said: str) -> None:
    """Also in dspy such rows score as failed; but if there are no others, nothing can be learnt of them."""
    with pytest.raises(TaskFailedError, match=r"each of the first 1[0-9] rows") as caught:
        compile_with(**given, max_metric_calls=3000)
    assert said in str(caught.value)
    assert "'question': '" in str(caught.value)


def test_a_model_that_never_keeps_to_the_form_does_not_end_it() -> None:
    """Its failures can be fed back."""
    spoilt = model(spoil=lambda prompt: "no fields")
    reflector = model()
    with dspy.context(lm=spoilt):
        program = compile_with(reflection_lm=reflector, add_format_failure_as_feedback=True, max_metric_calls=60)
    assert program.detailed_results.total_metric_calls > 40
    assert any("no fields" in prompt for prompt in reflector.engine.asked)


@pytest.mark.parametrize("data", ["trainset", "valset"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"question": "x"}, r"row 1 is of type dict; give dspy\.Example"),
        (dspy.Example(question="x"), r"row 1 does not say what its inputs are; add \.with_inputs"),
    ],
)
def test_rows_without_inputs_are_told_before_the_run(lm: Any, data: str, wrong: Any, said: str) -> None:
    gepa = GEPA(Metric(), reflection_lm=model(), max_metric_calls=100)
    given = {"trainset": TRAIN, "valset": VAL, data: [TRAIN[0], wrong]}
    with pytest.raises(InputError, match=f"{data}: {said}"):
        gepa.compile(Program(), **given)
    assert lm.engine.asked == []


def test_an_empty_valset_is_refused_and_not_the_trainset(lm: Any) -> None:
    with pytest.raises(InputError, match="valset has no examples"):
        GEPA(Metric(), reflection_lm=model(), max_metric_calls=100).compile(Program(), trainset=TRAIN, valset=[])


@pytest.mark.parametrize("student", [Program, lambda question: question])
def test_a_student_that_is_no_program_is_refused(lm: Any, student: Any) -> None:
    with pytest.raises(InputError, match=r"student is .*; give an object of a class of dspy\.Module"):
        GEPA(Metric(), reflection_lm=model(), max_metric_calls=100).compile(student, trainset=TRAIN)


def test_settings_of_a_tracker_are_handed_on(lm: Any) -> None:
    with pytest.warns(UserWarning, match="wandb_init_kwargs has no effect without use_wandb=True"):
        compile_with(wandb_init_kwargs={"project": "mine"}, max_metric_calls=20)
