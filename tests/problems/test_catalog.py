"""What holds for every problem: its seed is valid and has the value in the docs, and nonsense is refused in words."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.registry import Registry
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.catalog import SHIPPED_PROBLEMS
from flowevolve.problems.drivers import bin_packing, flow_shop, spot, streams, tsp
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS
from flowevolve.programs import FunctionProblem, Problem, WrongResultError
from flowevolve.prompts.reading.children import read_child
from flowevolve.stages.writing import WritingSettings
from tests.problems.conftest import Court
from tests.support.depth import examples
from tests.support.problem_checks import called, checker

SMALL: Mapping[str, Mapping[str, object]] = {
    "online_bin_packing": {"items": 60, "instances": 1},
    "tsp_construction": {"towns": 8, "instances": 1},
    "flow_shop": {"jobs": 5, "instances": 1, "rounds": 1},
    "transaction_scheduling": {"transactions": 12, "instances": 1},
    "model_placement": {"instances": 1},
    "cloudcast": {"regions": 3, "destinations": 3, "instances": 1},
    "expert_balance": {"layers": 2, "experts": 5, "slots": 8, "gpus": 4, "instances": 1},
    "llm_sql": {"rows": 6, "tables": 1},
    "spot_scheduling": {"traces": 2},
    "spot_multi_region": {"regions": 2, "traces": 2},
}
REGISTRY: Registry[Problem] = Registry("problem", "flowevolve.problems", SHIPPED_PROBLEMS, contract=Problem)
NAMES = [name for name in SHIPPED_PROBLEMS if name not in {"effibench", *EFFICIENCY_PROBLEMS}]
"""The problems whose values are the same in each run. Problems that are measured have tests of their own."""

everything: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def make(name: str, **settings: object) -> ShippedProblem:
    problem = REGISTRY.make(name, settings, "task")
    assert isinstance(problem, ShippedProblem)
    return problem


def small(name: str) -> ShippedProblem:
    return make(name, **SMALL.get(name, {}))


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_has_the_value_that_the_reference_page_names(name: str, court: Court) -> None:
    problem = make(name)
    assert problem.name == name
    value = court.mean(problem)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "problems.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    _, _, _, seed, reference, _, _ = row.split("|")
    assert float(seed) == round(value, 4)
    assert problem.worst < value
    if problem.reference is None:
        assert reference.strip() == "–" or "with" in reference
    else:
        assert float(reference) == round(problem.reference, 4)
        assert value < problem.reference


@pytest.mark.parametrize("name", NAMES)
def test_equal_programs_get_equal_verdicts(name: str, court: Court) -> None:
    problem = small(name)
    first, second = court.judge(problem), court.judge(small(name))
    assert (first.value, first.feedback, first.failure) == (second.value, second.feedback, second.failure)
    assert first.failure is None
    assert first.metrics["seconds"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_says_what_to_write_and_a_seed_can_be_edited(name: str) -> None:
    problem = make(name)
    source = problem.seed()["program.py"]
    functions = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    assert any(f"`{function}(" in problem.statement for function in functions)
    inside = source.split("# EVOLVE-BLOCK-START\n")[1].split("# EVOLVE-BLOCK-END")[0]
    assert any(isinstance(node, ast.Assign) for node in ast.parse(inside).body), "a constant to turn"
    assert "score" in problem.statement
    assert len({case.id for case in problem.cases}) == len(problem.cases)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("online_bin_packing", "priority"),
        ("tsp_construction", "next_town"),
        ("flow_shop", "perturb"),
        ("spot_scheduling", "decide"),
        ("spot_multi_region", "decide"),
    ],
)
def test_a_reply_without_the_function_that_a_driver_calls_is_refused(name: str, function: str) -> None:
    problem = small(name)
    entry, seed = WritingSettings().writing(problem).entry, problem.seed()
    source = seed["program.py"]
    assert read_child(f"```python\n{source}```", seed, "whole", entry=entry).files == seed.components
    without = source.replace(f"def {function}(", "def other(")
    with pytest.raises(UnparsableReplyError, match=f"does not define {function}, which is called"):
        read_child(f"```python\n{without}```", seed, "whole", entry=entry)


@pytest.mark.parametrize("name", NAMES)
@given(result=everything)
@examples(40)
def test_nonsense_is_refused_in_words(name: str, result: JSON) -> None:
    problem = checker(small(name))
    refused = refusal_or_none(problem, result)
    if refused is None:
        easy = ("autocorrelation", "uncertainty")
        assert name.startswith(easy), "only a list of numbers of any length is easily found"
    else:
        assert refused
        assert "\n" not in refused


@pytest.mark.parametrize("name", NAMES)
def test_what_is_nearly_right_is_scored_or_refused(name: str) -> None:
    problem = small(name)
    right = called(problem)
    assert problem.score(problem.cases[0], right).failure is None

    @given(data=st.data())
    @examples(60)
    def check(data: st.DataObject) -> None:
        result = damaged(right, data)
        if refusal_or_none(problem, result) is None:
            verdict = problem.score(problem.cases[0], result)
            assert math.isfinite(verdict.value)
            assert verdict.value > problem.worst
            assert all(map(math.isfinite, verdict.metrics.values()))

    check()


def refusal_or_none(problem: FunctionProblem, result: JSON) -> str | None:
    try:
        problem.score(problem.cases[0], result)
    except WrongResultError as error:
        return str(error)
    return None


def damaged(value: JSON, data: st.DataObject) -> JSON:
    """The value with one part, at any depth, replaced by anything, left out or doubled."""
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: damaged(value[key], data)}
    if isinstance(value, tuple | list) and value and data.draw(st.integers(0, 9)):
        place = data.draw(st.integers(0, len(value) - 1))
        instead = data.draw(st.sampled_from(["damaged", "without", "twice"]))
        if instead == "damaged":
            return [*value[:place], damaged(value[place], data), *value[place + 1 :]]
        return [*value[:place], *[value[place]] * (2 if instead == "twice" else 0), *value[place + 1 :]]
    if isinstance(value, int | float):
        return data.draw(everything | st.floats(-1e3, 1e3) | st.integers(-2, 20))
    return data.draw(everything)


@pytest.mark.parametrize("module", [bin_packing, flow_shop, spot, streams, tsp])
def test_a_drivers_names_are_in_no_programs_way(module: ModuleType) -> None:
    own = [name for name, value in vars(module).items() if inspect.getmodule(value) is module]
    assert own
    assert all(name.startswith("harness_") for name in own)
    assert "__future__" not in inspect.getsource(module)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: make("tsp_construction", towns=2), "task.towns is 2, but has to be at least 3"),
        (lambda: make("tsp_construction", town=20), "did you mean 'towns'?"),
        (lambda: make("online_bin_packing", items=0), "task.items is 0, but has to be at least 1"),
        (lambda: make("flow_shop", jobs=1), "task.jobs is 1, but has to be at least 2"),
        (lambda: make("flow_shop", rounds=0), "task.rounds is 0, but has to be at least 1"),
        (lambda: make("transaction_scheduling", transactions=0), "task.transactions is 0, but has to be at least 1"),
        (lambda: make("model_placement", instances=0), "task.instances is 0, but has to be at least 1"),
        (
            lambda: make("cloudcast", destinations=99),
            r"task.destinations is 99, but with \d+ regions it can be \d+ at most",
        ),
        (lambda: make("cloudcast", destinations=0), "task.destinations is 0, but has to be at least 1"),
        (
            lambda: make("expert_balance", slots=100),
            "100 slots are not possible with .*a multiple of the number of GPUs",
        ),
        (lambda: make("expert_balance", layers=0), "task.layers is 0, but has to be at least 1"),
        (lambda: make("spot_scheduling", traces=0), "task.traces is 0, but has to be at least 1"),
        (lambda: make("circle_packing_26", data="x"), "has no such setting"),
    ],
)
def test_settings_that_make_no_problem_are_refused(make: Callable[[], Problem], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(
    ("name", "row", "says"),
    [
        ("online_bin_packing", '{"items": [5], "capacity": 100, "dataset": "other"}', "only of other"),
        ("online_bin_packing", '{"items": [101], "capacity": 100, "dataset": "weibull_5k_test"}', "does not fit"),
        ("online_bin_packing", '{"items": "many", "capacity": 100}', "row 1.items"),
        ("tsp_construction", '{"coords": [[0, 0]]}', "row 1.coords"),
        ("flow_shop", '{"proc_times": [[1, 2], [3]]}', "row 1: proc_times"),
        ("transaction_scheduling", '{"workload": "w", "txns": {"a": "w-1 x-2"}}', "'x-2' is not an operation"),
        ("transaction_scheduling", '{"workload": "w", "txns": {"a": " "}}', "there are no operations"),
        ("model_placement", '{"gpu_num": 2, "models": [{"model_size": 1, "req_rate": 0, "slo": 1}]}', "req_rate"),
        ("expert_balance", '{"weight": [[1, 2], [3]], "num_replicas": 4, "num_gpus": 2}', "the same experts"),
        ("expert_balance", '{"weight": [[1, -2]], "num_replicas": 4, "num_gpus": 2}', "not below 0"),
        ("expert_balance", '{"weight": [[0, 0]], "num_replicas": 4, "num_gpus": 2}', "a load above 0"),
        ("spot_scheduling", '{"available": [true]}', "row 1.available"),
    ],
)
def test_rows_that_are_wrong_are_named(name: str, row: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(row + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=says):
        make(name, data=path)
