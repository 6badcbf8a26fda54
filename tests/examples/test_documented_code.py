"""Every block of code in README and docs runs, or says why it does not: Python on the simulator, in the order of its page;
configurations are such as can be run, and commands such as can be given.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from flowevolve._util import clock
from flowevolve.cli.app import app
from flowevolve.config.run import load_config, parse_config
from flowevolve.runner.assemble import find_algorithm
from flowevolve.runner.plan import ProvidedObjects, make_plan
from tests.support.documented import LANGUAGES, PAGES, ROOT, Block, blocks, without_blocks

BLOCKS = [block for page in PAGES for block in blocks(page)]
SIMULATED = (
    (r"llm=fe\.LLM\([^()]*\)", 'llm="simulated"'),
    (r"budget=fe\.Budget\([^()]*\)", "budget=fe.Budget(proposals=3)"),
)
"""What takes the place of a server, of a large budget, and of real time."""
NOT_CONFIGURATIONS = {"pyproject.toml", "prices.toml", "my-server.toml"}
ONE_MODULE = "docs/tutorial-algorithm.md"
"""The page whose blocks are one module together, which tests/examples/test_own_algorithm.py runs."""
OTHER_COMMANDS = {"apt-get", "cd", "docker", "mkdir", "pytest", "ssh"}


def _of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def _pages_with(language: str) -> list[str]:
    return sorted({block.page for block in _of(language)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_stands_in_fences_that_name_its_language(page: Path) -> None:
    unknown = [f"{block}: {block.language!r}" for block in blocks(page) if block.language not in LANGUAGES]
    assert (unknown, _indented(without_blocks(page))) == ([], [])


def _indented(text: str) -> list[str]:
    """Paragraphs that are indented like code, and are no part of a list."""
    found, in_list = [], False
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(" "):
            in_list = re.match(r"[-*] |\d+\. ", paragraph.lstrip("\n")) is not None
        elif paragraph.startswith("    ") and not in_list:
            found.append(paragraph)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to run in, from which modules can be imported."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def _write_files(page: str, folder: Path) -> None:
    for block in BLOCKS:
        if block.page == page and block.title is not None:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in _pages_with("python") if page != ONE_MODULE])
def test_python_runs(page: str, folder: Path) -> None:
    _write_files(page, folder)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in _of("python"):
        if block.page == page:
            _run(block, names)


def test_the_first_program_prints_the_line_that_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = [block for block in BLOCKS if block.page == "docs/start.md"]
    program = next(block for block in page if block.title == "first.py")
    shown = next(block for block in page if block.language == "text")
    exec(compile(program.code, "first.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines()[0] == shown.code.strip()


def _run(block: Block, names: dict[str, object]) -> None:
    code = block.code
    for pattern, instead in SIMULATED:
        code = re.sub(pattern, instead, code)
    if "clock=" not in code and "optimize_async" not in code:  # which goes by the clock of the loop that it is in
        code = code.replace("budget=fe.Budget", 'clock="virtual", budget=fe.Budget')
    compiled = compile(code, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if block.not_run is not None:
        return
    if not compiled.co_flags & inspect.CO_COROUTINE:
        exec(compiled, names)
        return

    async def go() -> None:
        await eval(compiled, names)

    clock.run(go, clock="virtual")


@pytest.mark.parametrize("block", _of("toml"), ids=str)
def test_toml_is_a_configuration_that_can_be_run(block: Block, folder: Path) -> None:
    table = tomllib.loads(block.code)
    if block.title in NOT_CONFIGURATIONS or "project" in table:
        return
    if block.title is None:
        config = parse_config({"budget": {"minutes": 1}, **table}, str(block))
        find_algorithm(config).config_type.model_validate(config.algorithm.settings)
        return
    _write_files(block.page, folder)
    make_plan(load_config(block.title), ProvidedObjects(None, None))


@pytest.mark.parametrize("block", _of("json"), ids=str)
def test_json_is_json(block: Block) -> None:
    for line in block.code.splitlines() if (block.title or "").endswith(".jsonl") else [block.code]:
        json.loads(line)


@pytest.mark.parametrize("page", _pages_with("bash"))
def test_commands_can_be_given(page: str, folder: Path) -> None:
    _write_files(page, folder)
    variables: dict[str, str] = {}
    for block in _of("bash"):
        if block.page == page:
            for line in block.code.replace("\\\n", " ").splitlines():
                _check_command(line, variables, block)


def _check_command(line: str, variables: dict[str, str], block: Block) -> None:
    if line.startswith("{"):  # what a command printed
        return
    if assigned := re.fullmatch(r"([A-Z]+)=(\"[^\"]*\"|\S+)(?: *#.*)?", line):
        variables[assigned[1]] = assigned[2].strip('"')
        return
    for name, value in variables.items():
        line = line.replace(f"${name}", value)
    words = shlex.split(line.removeprefix("$ ").partition("<<<")[0], comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        del words[0]
    if not words:
        return
    program = Path(words[0]).name
    arguments = words[1:]
    match program, arguments:
        case "flowevolve", _:
            _check_flowevolve(arguments, block)
        case "make", _:
            targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(arguments) <= set(targets), f"{block}: {line}"
        case "pip", ["install", *packages]:
            assert _extras(packages) <= _known_extras(), f"{block}: {line}"
        case "python" | "python3", ["-m", module, *_]:
            assert find_spec(module) is not None, f"{block}: {line}"
        case "python" | "python3", [script, *_] if block.not_run is None:
            assert any((at / script).exists() for at in (ROOT, Path())), f"{block}: {line}"
        case _ if block.not_run is None:
            assert program in OTHER_COMMANDS or (ROOT / words[0]).exists(), f"{block}: {line}"


def _check_flowevolve(arguments: Sequence[str], block: Block) -> None:
    """That the command and its options are known, and that a configuration it names can be run with its overrides."""
    command, rest = typer.main.get_command(app), list(arguments)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands
        command = command.commands[rest.pop(0)]
    if isinstance(command, TyperGroup):
        assert set(rest) <= {name for option in command.params for name in option.opts} | {"--help"}
        return
    try:
        path = Path(command.make_context(arguments[0], rest).params.get("config") or "")
    except Exception as error:
        error.add_note(f"{block}: flowevolve {shlex.join(arguments)}")
        raise
    overrides = [word for flag, word in pairwise(arguments) if flag == "--set"]
    if path.suffix == ".toml":
        here = path if path.exists() else ROOT / path
        if here.exists() and block.page != ONE_MODULE:
            sys.path.insert(0, str(here.parent))
            config = load_config(here, [each for each in overrides if not each.startswith("task.data=")])
            find_algorithm(config).config_type.model_validate(config.algorithm.settings)


def _extras(packages: Sequence[str]) -> set[str]:
    named = [re.search(r"\[(.*)\]$", package) for package in packages]
    return {extra for match in named if match for extra in match[1].split(",")}


@cache
def _known_extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
