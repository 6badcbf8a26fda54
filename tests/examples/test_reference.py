"""The reference of the Python interface has every public name, and the page of errors quotes the errors that there are."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from shutil import copytree
from typing import get_args

import anyio
import pytest
from pydantic import BaseModel

import flowevolve as fe
from flowevolve._util.errors import FlowevolveError
from flowevolve.config.run import parse_config
from flowevolve.runner.plan import ProvidedObjects, make_plan
from tests.support.command import flowevolve as command
from tests.support.documented import ROOT
from tests.support.journals import edited

API = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
FAQ = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
MESSAGES = [
    message
    for heading in re.findall(r"^### .*`.*$", FAQ, re.MULTILINE)
    for message in re.findall(r"`([^`]*)`", heading)
]
ROWS = [{"text": f"Ticket {number}.", "label": "bug"} for number in range(4)]
FAULTY = "tests.runner.test_faulty_algorithms"
NOBODY = "http://127.0.0.1:9/v1"


def _call(**changes: object) -> Callable[[], object]:
    """A call of `optimize` that is right but for the changes."""
    right: dict[str, object] = {
        "prompt": "Classify.",
        "train": ROWS,
        "metric": lambda row, output: True,
        "llm": "simulated",
        "budget": fe.Budget(proposals=1),
        "clock": "virtual",
        "progress": False,
    }
    return lambda: fe.optimize(**{name: value for name, value in {**right, **changes}.items() if value is not None})  # type: ignore[arg-type]


def _named(task: str = "house_style", algorithm: str = "gepa", **changes: object) -> Callable[[], object]:
    arguments = {"budget": fe.Budget(proposals=1), "clock": "virtual", "progress": False, **changes}
    return lambda: fe.optimize(task, algorithm, **arguments)  # type: ignore[arg-type]


def _twice() -> None:
    _named(out="a")()
    _named(out="a")()


def _without_pyarrow() -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in [*sys.modules]:
            if name.split(".")[0] == "pyarrow":
                patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "pyarrow", None)
        Path("rows.parquet").touch()
        _call(train="rows.parquet")()


def _always_failing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which tells of the first failure
        _call(metric=lambda row, output: row["title"], on_error="count", budget=fe.Budget(proposals=30))()


def _with_workers() -> None:
    table = {"algorithm": {"name": f"{FAULTY}:Climb"}, "stages": {"propose": {"workers": 3}}, "budget": {"minutes": 1}}
    make_plan(parse_config(table, "test"), ProvidedObjects())


async def _broken(row: Mapping[str, str], ask: object) -> str:
    return row["title"]


async def _in_a_loop() -> None:
    fe.optimize(budget=fe.Budget(proposals=1))


MISTAKES: list[Callable[[], object]] = [
    _call(train=["a", "b"]),
    _call(train=[{"a": "x", "b": "y", "label": "bug"}] * 4),
    _call(input="{title}"),
    _call(input='{"text": "{text}"}'),
    _call(train=ROWS[:1]),
    _call(train="none.jsonl"),
    _without_pyarrow,
    _call(prompt={"one": "a", "two": "b"}),
    _call(metric=lambda row, output: None),
    _call(metric=lambda row, output: 50),
    _call(metric=lambda row, output: row["title"]),
    _call(metric=lambda row, output: fe.Score(1.0, None, passed=True)),  # type: ignore[arg-type]
    _call(program=_broken),
    _always_failing,
    _call(llm=None),
    _call(llm=fe.LLM("m", base_url=NOBODY, patience_seconds=1), clock="real"),
    _named(budget=fe.Budget()),
    _named(budget=fe.Budget(dollars=1)),
    lambda: fe.Budget(minuts=3),  # type: ignore[call-arg]
    _named("house"),
    _named(algorithm="gepaa"),
    _named("none:Task"),
    _named(algorithm=f"{FAULTY}:NoEmit"),
    _named(algorithm=f"{FAULTY}:Uncharged"),
    _with_workers,
    _twice,
    lambda: anyio.run(_in_a_loop),
]
CONFIGURATIONS = {
    "no_budget": "",
    "no_model": f'[budget]\nminutes = 1\n[llm]\nbackend = "openai"\nbase_url = "{NOBODY}"\n',
    "no_vllm": '[budget]\nminutes = 1\n[llm]\nbackend = "vllm"\nmodel = "m"\n[vllm]\nexecutable = "none"\n',
}
AGAIN = ["resume", "short", "--set", "algorithm.max_in_flight=2"]


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the mistakes of a first hour come to."""
    folder = tmp_path_factory.mktemp("mistakes")
    with chdir(folder):
        found = [_error(mistake) for mistake in MISTAKES]
    for name, text in CONFIGURATIONS.items():
        (folder / f"{name}.toml").write_text(text)
        found.append(command("check", f"{name}.toml", cwd=folder).stderr)
    (folder / "short.toml").write_text('clock = "virtual"\n[budget]\nproposals = 1\n')
    command("run", "short.toml", "--out", "short", cwd=folder)
    found.append(" ".join(command(*AGAIN, cwd=folder).stdout.split()))  # a note above the summary
    for name, place in ("damaged", 30_000), ("lost", 0):
        copytree(folder / "a", folder / name)
        content = bytearray((folder / name / "journal.sqlite").read_bytes())
        content[place:] = bytes(len(content) - place)
        (folder / name / "journal.sqlite").write_bytes(content)
    copytree(folder / "a", folder / "older")
    with edited(folder / "older") as journal:
        journal.execute("UPDATE events SET data = '{}' WHERE seq = 3")
    ended = ["report", "none"], ["resume", "a"], ["export", "damaged"], ["export", "older"], ["repair", "lost"]
    return [*found, *(command(*arguments, cwd=folder).stderr for arguments in ended)]


def _error(mistake: Callable[[], object]) -> str:
    with pytest.raises(FlowevolveError) as raised:
        mistake()
    return str(raised.value)


def test_the_reference_has_every_public_name() -> None:
    documented = re.findall(r"^::: flowevolve\.(\w+)$", API, re.MULTILINE)
    assert sorted(documented) == sorted(vars(fe)["__all__"])


def test_the_reference_of_the_configuration_has_every_setting() -> None:
    page = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", page))
    assert {name for name in _settings(fe.Config) if name.split(".")[-1] not in words} == set()


def _settings(model: type[BaseModel], section: str = "") -> Iterator[str]:
    """The names of all settings of a model, those of its sections included."""
    for name, field in model.model_fields.items():
        yield f"{section}{name}"
        for inner in _models(field.annotation):
            yield from _settings(inner, f"{section}{name}.")


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def test_every_error_is_one_line(errors: list[str]) -> None:
    assert [error for error in errors if "\n" in error.strip() or "Traceback" in error] == []


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_faq_is_one_that_comes(message: str, errors: list[str]) -> None:
    pattern = ".*".join(re.escape(part.strip()) for part in message.split("…"))
    assert any(re.search(pattern, error) for error in errors), "\n".join(errors)
