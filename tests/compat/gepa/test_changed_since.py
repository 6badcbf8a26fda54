"""A run directory is refused where data, rows, arguments or code have changed since, and taken where they are the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from flowevolve._util.errors import InputError
from tests.support.gepa_dummies import TRAIN, VAL, Silent, reflect
from tests.support.gepa_resuming import Fragile, OfMeans, optimize


def test_a_run_of_gepas_own_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "gepa_state.bin").touch()
    with pytest.raises(InputError, match="gepa itself"):
        optimize(Fragile(), tmp_path)


class Another(Fragile):
    """An adapter of another class."""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 5}, "seed is 5, but was 0"),
        ({"seed_candidate": {"other": "x"}}, "seed_candidate is another one"),
        ({"trainset": TRAIN[:5]}, "the number of examples in trainset is 5, but was 7"),
        ({"valset": [*VAL, "more"]}, "the number of examples in valset is 6, but was 5"),
        ({"adapter": Another()}, "adapter is of class Another, but was of Fragile"),
    ],
)
def test_other_data_or_another_seed_candidate_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    """By the names of the arguments, and with what can be done where there is no configuration."""
    optimize(Fragile(), tmp_path)
    given = {"adapter": Fragile(), **changed}
    with pytest.raises(InputError) as refused:
        optimize(given.pop("adapter"), tmp_path, **given)
    assert str(refused.value) == (
        f"run_dir: the run in {tmp_path} can't go on with changed arguments: {said}. Give them as they "
        "were, or give another directory"
    )


@dataclass(frozen=True)
class Question:
    """A row that is an object; what it holds may be in a set, in no order."""

    text: str
    tags: frozenset[str] = frozenset()
    extra: object = None


class OfObjects(Fragile):
    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        return super().evaluate([each if isinstance(each, str) else str(each) for each in batch], candidate, True)


class OfTypes(Fragile):
    """Knows rows by their types alone."""

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        return super().evaluate([type(each).__name__ for each in batch], candidate, capture_traces)


def rows(first: str) -> list[Question]:
    return [Question(first, frozenset({"a", "b"}), object()), Question("same")]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("valset", ["others", *VAL[1:]]),
        ("trainset", ["others", *TRAIN[1:]]),
        ("valset", rows("other")),
        ("trainset", [{"text": "other"}, {"text": "same"}]),
    ],
)
def test_other_rows_of_the_same_number_are_refused(tmp_path: Path, name: str, others: list[Any]) -> None:
    """Scores on them would stand beside scores on the rows of before."""
    before = {
        "others": list(VAL if name == "valset" else TRAIN),
        "same": rows("one") if name == "valset" else [{"text": "one"}, {"text": "same"}],
    }["others" if isinstance(others[0], str) else "same"]
    optimize(OfObjects(), tmp_path, **{name: before}, use_merge=False)
    again = OfObjects()
    with pytest.raises(InputError, match=rf"{tmp_path}: {name} has changed since the run began.*another directory"):
        optimize(again, tmp_path, **{name: others}, max_metric_calls=200, use_merge=False)
    assert again.calls == []


def test_rows_made_anew_of_the_same_contents_are_the_same(tmp_path: Path) -> None:
    given: dict[str, Any] = {"trainset": rows("one"), "valset": rows("one"), "use_merge": False}
    first = optimize(OfObjects(), tmp_path, **given)
    again = OfObjects()
    assert optimize(again, tmp_path, **{**given, "trainset": rows("one"), "valset": rows("one")}) == first
    assert again.calls == []


class Tensor:
    """As one of torch's, it has a number only if it is of one element."""

    def item(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


@dataclass(slots=True)
class Lazy:
    """A row that is filled in as it is used."""

    tags: Any
    tensor: Tensor
    later: str = field(init=False)


def test_rows_may_hold_what_is_no_data(tmp_path: Path) -> None:
    def made(score: Any) -> list[Any]:
        itself: dict[str, Any] = {"score": score}
        itself["self"] = itself
        return [Lazy({Question("a"), object()}, Tensor()), {"when": date(2026, 1, 2), "score": score}, itself]

    first = optimize(OfTypes(), tmp_path, valset=made(np.float32(0.5)), use_merge=False)
    assert optimize(OfTypes(), tmp_path, valset=made(np.float32(0.5)), use_merge=False) == first
    with pytest.raises(InputError, match="valset has changed"):
        optimize(OfTypes(), tmp_path, valset=made(np.float32(0.25)), use_merge=False)


@dataclass
class Numbered:
    """A row that gives itself a name."""

    text: str
    name: str = field(default_factory=lambda: uuid4().hex)


class Slotted:
    """A row without a ``__dict__``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Opaque:
    """Nobody can tell what is in it."""

    def __init__(self, inside: object) -> None:
        self.inside = inside


def within_itself() -> list[Any]:
    row: list[Any] = ["text"]
    row.append(row)
    return row


@pytest.mark.parametrize(
    "made",
    [
        lambda: {"text": "a", "uuid": str(uuid4())},
        lambda: {"text": "a", "uuid": uuid4()},
        lambda: {1: "a", "b": [Opaque(object())], Opaque(1): 2},
        lambda: {"text": "a", "some": {Opaque(1), "b", "c"}},
        lambda: Numbered("a"),
        lambda: Slotted("a"),
        lambda: {"of": np.arange(6).reshape(2, 3)[:, ::2], "objects": np.array([Opaque(1), "a"], dtype=object)},
        within_itself,
    ],
)
def test_the_same_rows_are_gone_on_with(tmp_path: Path, made: Callable[[], Any]) -> None:
    """Though each process gives them other random names, and keeps other objects in them."""
    first = optimize(OfTypes(), tmp_path, valset=[made()], use_merge=False)
    assert optimize(OfTypes(), tmp_path, valset=[made()], use_merge=False) == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"x": np.array([1, 2])}, {"x": np.array([1, 3])}),
        ({"x": np.array([1, 2])}, {"x": np.array([[1], [2]])}),
        ({"x": np.array(["a", None])}, {"x": np.array(["b", None])}),
        ({"x": np.array(["2020-01-01"], "datetime64[D]")}, {"x": np.array(["2020-01-02"], "datetime64[D]")}),
        ({1: "a", "b": "c"}, {1: "x", "b": "c"}),
        ({1: "a"}, {"1": "a"}),
        ({"x": [Opaque(1), {(1, 2): {"deep": [b"a"]}}]}, {"x": [Opaque(1), {(1, 2): {"deep": [b"b"]}}]}),
        ({"x": MappingProxyType({"a": 1})}, {"x": MappingProxyType({"a": 2})}),
        ({"x": deque([1])}, {"x": deque([2])}),
        ({"x": Opaque(1)}, {"x": object()}),
        (Slotted("a"), Slotted("b")),
        (Numbered("a"), Numbered("b")),
    ],
)
def test_rows_that_differ_in_what_can_be_read_are_refused(tmp_path: Path, before: Any, after: Any) -> None:
    optimize(OfTypes(), tmp_path, valset=[before], use_merge=False)
    with pytest.raises(InputError, match="valset has changed"):
        optimize(OfTypes(), tmp_path, valset=[after], use_merge=False)


class Endless:
    """A loader that is asked for its rows one by one, as each may take long."""

    def __init__(self) -> None:
        self.fetched: list[int] = []

    def all_ids(self) -> list[int]:
        return list(range(len(TRAIN)))

    def fetch(self, ids: list[int]) -> list[str]:
        self.fetched.extend(ids)
        return [TRAIN[each] for each in ids]

    def __len__(self) -> int:
        return len(TRAIN)


def test_a_loader_is_asked_for_no_row_before_it_is_used(tmp_path: Path) -> None:
    optimize(Fragile(), tmp_path, trainset=Endless())
    again = Endless()
    optimize(Fragile(), tmp_path, trainset=again)
    assert again.fetched == []


def selector(*_: Any) -> list[str]:
    return ["first"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reflection_prompt_template", "Improve <curr_param> with <side_info>"),
        ("frontier_type", "hybrid"),
        ("use_merge", False),
        ("reflection_minibatch_size", 2),
        ("candidate_selection_strategy", "current_best"),
        ("acceptance_criterion", "improvement_or_equal"),
        ("acceptance_criterion", OfMeans()),
        ("module_selector", selector),
        ("skip_perfect_score", False),
    ],
)
def test_an_argument_that_changes_what_comes_is_told_where_it_has_changed(
    tmp_path: Path, name: str, value: Any
) -> None:
    adapter: dict[str, Any] = {"objectives": True}
    optimize(Fragile(**adapter), tmp_path)
    unchanged, changed = Silent(), Silent()
    optimize(Fragile(**adapter), tmp_path, logger=unchanged)
    optimize(Fragile(**adapter), tmp_path, logger=changed, **{name: value})
    assert not any("has changed" in line for line in unchanged.lines)
    said = f"{name} has changed since the run began; from now on the new one is used, and earlier scores are kept"
    (told,) = [line for line in changed.lines if "has changed" in line]
    assert told.startswith(f"flowevolve: {tmp_path}: {said}")


def test_code_that_makes_scores_or_texts_is_told_where_it_has_changed(tmp_path: Path) -> None:
    class Mended(Fragile):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            return super().evaluate(list(batch), dict(candidate), capture_traces)

    def reflects(prompt: Any) -> str:
        return reflect(prompt).strip()

    Mended.__name__ = Fragile.__name__
    optimize(Fragile(), tmp_path)
    logger = Silent()
    optimize(Mended(), tmp_path, logger=logger, reflection_lm=reflects)
    told = [line for line in logger.lines if "has changed" in line]
    assert [line.partition(f"{tmp_path}: ")[2].partition(" has")[0] for line in told] == [
        "the code of reflection_lm",
        "the code of adapter.evaluate",
    ]
