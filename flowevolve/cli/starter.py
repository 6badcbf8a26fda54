"""The folder that ``init`` writes: a configuration with comments, and what it names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from shutil import copyfile
from string import Template
from textwrap import wrap
from typing import Literal

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean, validated
from flowevolve.core.budget import Budget
from flowevolve.programs.signature import signatures
from flowevolve.runner.registries import ALGORITHMS
from flowevolve.tasks.doubts import ANSWERS
from flowevolve.tasks.metric import MetricTask
from flowevolve.tasks.rows import given_rows

Kind = Literal["prompt", "program"]

CONFIG, TASK, PROGRAM, SCORING = "run.toml", "my_task.py", "program.py", "my_scoring.py"
BUDGET, PROMPT = "10 minutes", "Answer the question. Say nothing but the answer."
SAMPLE_PROMPT = "You write for our company."
ALGORITHMS_FOR: Mapping[Kind, tuple[str, ...]] = {
    "prompt": ("gepa", "combee", "ace", "levi"),
    "program": ("one_plus_lambda", "best_of_n", "levi", "code_evolve", "context_evolve", "cse"),
}
"""The shipped algorithms for each kind; the first is chosen where none is named."""
LIMITS: Mapping[str, str] = {
    "minutes": "minutes = 10",
    "proposals": "proposals = 200        # new texts written, whether they are taken or not",
    "tokens": "tokens = 1_000_000     # prompts and replies of all calls",
    "dollars": 'dollars = 5            # needs [llm.prices."MODEL"] with input and output, per million tokens',
    "target_score": "target_score = 0.95    # stop as soon as this is reached",
}
"""The limits of a budget, as they are written in a configuration."""
_AMOUNT = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([a-z]+)")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user wants to begin with; what is None is chosen."""

    kind: Kind = "prompt"
    rows: Path | None = None
    """A file of rows; without one, a sample is written."""
    input: str | None = None
    """What the model is shown of a row."""
    answer: str | None = None
    """The column with the right answer."""
    prompt: str | None = None
    program: Path | None = None
    """The program to begin with; without one, a sample is written."""
    model: str | None = None
    """Without one, the model is simulated."""
    url: str | None = None
    budget: str = BUDGET
    algorithm: str | None = None

    @property
    def budget_unit(self) -> str:
        return read_budget(self.budget)[0]


def write_starter(folder: Path, wish: Wish) -> list[Path]:
    """Write what a run of this kind needs into a folder, and return the files. Nothing there is overwritten.

    Raises:
        InputError: if something is wrong with the wish, or a file exists already or can't be written.
    """
    if wish.url is not None and wish.model is None:
        raise InputError("--url: name the model that is served there with --model")
    texts = _prompt_files(folder, wish) if wish.kind == "prompt" else _program_files(wish)
    texts[CONFIG] = _config(wish)
    given = wish.rows or wish.program
    copied = None if given is None or _is_in(given, folder) else (given, folder / given.name)
    written = [folder / name for name in texts] + ([] if copied is None else [copied[1]])
    for path in written:
        if path.exists():
            raise InputError(f"{path} exists already and is not overwritten; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
        if copied is not None:
            copyfile(*copied)
    except OSError as error:
        raise InputError(f"{folder} can't be written: {error.strerror}. Name another folder") from None
    return written


def read_budget(typed: str) -> tuple[str, str]:
    """The limit and the amount of a budget such as "10 minutes".

    Raises:
        InputError: if it can't be read.
    """
    amount = typed.strip().lower()
    found = _AMOUNT.fullmatch(f"{amount[1:]} dollars" if amount.startswith("$") else amount)
    units = [name for name in Budget.model_fields if name != "target_score"]
    if found is None:
        raise InputError(
            f"--budget {typed!r} can't be read; give a number and a unit, such as '10 minutes' or '200 proposals'"
        )
    amount, unit = found[1], found[2] if found[2].endswith("s") else f"{found[2]}s"
    if unit not in units:
        raise InputError(f"--budget {typed!r}: unknown limit {unit!r}; {did_you_mean(unit, units)}")
    try:
        validated(Budget, {unit: float(amount) if "." in amount else int(amount)}, "")
    except InputError as error:
        raise InputError(f"--budget {typed!r}: {error}") from None
    return unit, amount


def check_rows(wish: Wish) -> MetricTask:
    """The task that the rows make, to check that they fit.

    Raises:
        InputError: if they can't be read, or don't fit.
    """
    assert wish.rows is not None
    shown, _ = find_columns(wish)
    return MetricTask(PROMPT, wish.rows, lambda row, output: 0.0, input=shown)


@dataclass(frozen=True, slots=True)
class Entry:
    """The function of a program that is called."""

    name: str
    needed: tuple[str, ...]
    """The arguments that each case has to give."""
    others: tuple[str, ...]
    """The program's other functions."""


def program_entry(program: Path) -> Entry:
    """The first function of a program that needs no arguments, or else its last function.

    Raises:
        InputError: if the file can't be read, or holds no function.
    """
    try:
        functions = signatures(program.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{program} can't be read: {error.strerror}") from None
    except SyntaxError as error:
        raise InputError(f"{program} is not a Python program: line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise InputError(f"{program} is not a Python program: {error}") from None
    if not functions:
        raise InputError(f"{program} has no function; write one that returns what is to be scored")
    without_arguments = [name for name, each in functions.items() if not each.needed]
    name = without_arguments[0] if without_arguments else list(functions)[-1]
    return Entry(name, functions[name].needed, tuple(other for other in functions if other != name))


def _prompt_files(folder: Path, wish: Wish) -> dict[str, str]:
    if wish.rows is None:
        prompt = wish.prompt or SAMPLE_PROMPT
        return {TASK: _filled("sample_task.py.txt", prompt=json.dumps(prompt, ensure_ascii=False))}
    check_rows(wish)
    shown, answer = find_columns(wish)
    place = str(wish.rows.resolve().relative_to(folder.resolve())) if _is_in(wish.rows, folder) else wish.rows.name
    texts = {"rows": place, "input": shown, "answer": answer, "prompt": wish.prompt or PROMPT}
    return {
        TASK: _filled(
            "rows_task.py.txt", **{name: json.dumps(text, ensure_ascii=False) for name, text in texts.items()}
        )
    }


def find_columns(wish: Wish) -> tuple[str, str]:
    """What the model is shown of a row, and the column with the answer.

    Raises:
        InputError: if the rows can't be read, or a column is not there.
    """
    assert wish.rows is not None
    columns = list(given_rows(wish.rows, "--rows")[0])
    answer = wish.answer or next((name for name in columns if name.lower() in ANSWERS), columns[-1])
    if answer not in columns:
        raise InputError(f"--answer {answer}: there is no such column; {did_you_mean(answer, columns)}")
    rest = [name for name in columns if name != answer and not {"{", "}"} & set(name)]
    if wish.input is not None:
        return wish.input, answer
    if not rest:
        raise InputError(
            f"{wish.rows}: say with --input what the model is shown of a row, as there is no column besides {answer!r} "
            "(columns with braces in their names don't count)"
        )
    return (f"{{{rest[0]}}}" if len(rest) == 1 else "\n".join(f"{name}: {{{name}}}" for name in rest)), answer


def _program_files(wish: Wish) -> dict[str, str]:
    if wish.program is None:
        return {PROGRAM: _filled("sample_program.py.txt"), SCORING: _filled("sample_scoring.py.txt")}
    given = ", arguments: dict[str, object]" if program_entry(wish.program).needed else ""
    return {SCORING: _filled("own_scoring.py.txt", arguments=given)}


def _config(wish: Wish) -> str:
    algorithm = _algorithm(wish)
    about = next((each.about for each in ALGORITHMS.listing() if each.name == algorithm), "")
    unit, amount = read_budget(wish.budget)
    simulated = wish.model is None
    if simulated and unit == "dollars":
        raise InputError(
            "--budget: a simulated model costs no dollars; name a real model with --model, or give another limit, "
            "such as '10 minutes'"
        )
    return _filled(
        "run.toml.txt",
        config=CONFIG,
        clock='clock = "virtual"    # the simulated model\'s time passes at once; remove this line with a real model\n'
        if simulated
        else "",
        about="\n".join(wrap(about, 100, initial_indent="# ", subsequent_indent="# ")),
        algorithm=json.dumps(algorithm),
        task=_task_section(wish),
        llm=_llm_section(wish, prices=unit == "dollars"),
        budget=f"{unit} = {amount}",
        limits="\n".join(f"# {text}" for name, text in LIMITS.items() if name != unit),
    )


def _algorithm(wish: Wish) -> str:
    fitting, name = ALGORITHMS_FOR[wish.kind], wish.algorithm
    if name is None:
        return fitting[0]
    if name not in ALGORITHMS.names():
        raise InputError(f"--algorithm: unknown algorithm {name!r}; {did_you_mean(name, ALGORITHMS.names())}")
    if name in ALGORITHMS.builtin and name not in fitting:
        raise InputError(f"--algorithm: {name!r} is not for a {wish.kind}; give one of {', '.join(fitting)}")
    return name


def _task_section(wish: Wish) -> str:
    if wish.kind == "prompt":
        return (
            f'# The function `task` in {TASK} makes the task: prompt, rows and metric.\n[task]\nname = "my_task:task"'
        )
    place, entry, statement = PROGRAM, "solve", "Compute the sine of x, for x from 0 to 3, without the math module."
    cases = ["cases = [{ x = 0.5 }, { x = 1.5 }, { x = 2.5 }]    # arguments by name, a case each"]
    called: Entry | None = None
    if wish.program is not None:
        called = program_entry(wish.program)
        place, entry, cases = wish.program.name, called.name, _cases_to_fill_in(called)
        statement = "Say here what the function is to do, and what makes it good."
    others = f"    # or {', '.join(called.others)}" if called is not None and called.others else ""
    lines = [
        f"# A program, called in the sandbox; what it returns is scored by `score` in {SCORING}.",
        "[task]",
        'name = "program"',
        f"program = {json.dumps(place)}",
        f"entry = {json.dumps(entry)}{others}",
        'evaluator = "my_scoring:score"',
        f"statement = {json.dumps(statement)}",
        *cases,
    ]
    return "\n".join(lines)


def _cases_to_fill_in(called: Entry) -> list[str]:
    if not called.needed:
        return []
    arguments = ", ".join(f"{name} = ..." for name in called.needed)
    return [
        "# Fill in the arguments, a case each, and remove the mark: a program is called with every case.",
        f"# cases = [{{ {arguments} }}, {{ {arguments} }}]",
    ]


def _llm_section(wish: Wish, *, prices: bool) -> str:
    if wish.model is None:
        return _simulated_section(wish)
    lines = ["# Any server with OpenAI's API.", "[llm]", 'backend = "openai"', f"model = {json.dumps(wish.model)}"]
    if wish.url is None:
        lines.append("# OpenAI's own server, with the key in OPENAI_API_KEY; for another one:")
        lines.append('# base_url = "http://localhost:8000/v1"')
    else:
        lines.append(f"base_url = {json.dumps(wish.url)}")
    lines.append('# api_key_env = "MY_KEY"    # the environment variable with the key, if it is another')
    if prices:
        lines += [
            "",
            "# A budget in dollars needs the model's prices, per million tokens: fill them in, and remove the marks.",
            f"# [llm.prices.{json.dumps(wish.model)}]",
            "# input = ...",
            "# output = ...",
        ]
    return "\n".join(lines)


def _simulated_section(wish: Wish) -> str:
    world, knows = "rules", "the sample's style, and nothing else"
    if wish.kind == "program":
        world, knows = "code", "nothing of what programs are for"
    elif wish.rows is not None:
        knows = "nothing of your rows: scores mean nothing until a real one takes its place"
    lines = [
        f"# A simulated model, which needs no key and knows {knows}.",
        "[llm]",
        'backend = "sim"',
        "# A real one: remove the line above, clock and [sim], and say",
        '# backend = "openai"',
        '# model = "gpt-5-mini"                        # the key is in OPENAI_API_KEY',
        '# base_url = "http://localhost:8000/v1"       # a server of your own',
        "",
        "[sim]",
        f'world = "{world}"',
    ]
    return "\n".join(lines)


def _is_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _filled(template: str, **values: str) -> str:
    text = (files("flowevolve.cli") / "templates" / "init" / template).read_text("utf-8")
    return Template(text).substitute(values)
