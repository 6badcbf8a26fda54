"""Runs in a program's own sandbox: loads the program and answers the evaluator's questions.

The evaluator is in another sandbox (`flowevolve.sandbox.inside.stand_in`). Nothing trusts this process: whatever the
program does to it only affects the program's own answers.
"""

from __future__ import annotations

import builtins
import inspect
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, MethodType, ModuleType

from flowevolve.sandbox.inside import plain

QUESTIONS, ANSWERS = 4, 5
"""The descriptors of the pipes for questions and for answers."""
_OUTPUT = 2**20
"""How many bytes are kept of each output of a program that is run as a script."""


def serve(program: str, name: str, modules: Mapping[str, str]) -> None:
    """Answer questions until the evaluator has ended. ``modules`` are files that the program may import, by their
    paths.
    """
    folder = Path(tempfile.mkdtemp(prefix="program-"))
    for path, text in {**modules, name: program}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for interpreters that the program starts
    os.chdir(folder)
    served = _Served(program, str(folder / name))
    while True:
        try:
            question = plain.receive(QUESTIONS, served.known)
        except EOFError:
            return
        plain.send(ANSWERS, served.answer(question))


class _Served:
    """A program, with its objects that the evaluator knows by their numbers."""

    def __init__(self, program: str, path: str) -> None:
        self._program = program
        self._path = path
        self._objects: list[object] = []

    def known(self, number: object) -> object:
        if not isinstance(number, int):
            raise ValueError(f"no number of an object: {number!r:.40}")
        return self._objects[number]

    def answer(self, question: object) -> bytes:
        match question:
            case {"id": asked, "ask": str(what), "of": of}:
                try:
                    return plain.packed({"id": asked, "value": self._done(what, of)}, self._refer)
                except BaseException as error:  # noqa: BLE001 - the evaluator gets whatever the program raises
                    return plain.packed({"id": asked, "error": _described(error)}, self._refer)
        raise ValueError(f"no question: {question!r:.80}")

    def _done(self, what: str, of: object) -> object:
        match what, of:
            case "load", str(name):
                return self._load(name)
            case "get", (owner, str(name)):
                return getattr(owner, name)
            case "call", (function, tuple(arguments), dict(keywords)) if callable(function):
                return function(*arguments, **keywords)
            case "run", (list(arguments), bytes(given)):
                return _run_as_script(self._program, self._path, [str(each) for each in arguments], given)
        raise ValueError(f"can't do {what!r:.40}")

    def _load(self, name: str) -> dict[str, object]:
        """Execute the program as a module of this name, anew each time; returns the module and its globals.

        ``data`` lists the names of plain data; ``objects`` has functions, classes and other objects by name.
        """
        module = ModuleType(name)
        module.__file__ = self._path
        sys.modules[name] = module
        exec(compile(self._program, self._path, "exec"), module.__dict__)  # noqa: S102 - what all of this is for
        data: list[str] = []
        objects: dict[str, object] = {}
        for key, value in module.__dict__.items():
            if key.startswith("__") or isinstance(value, ModuleType):
                continue
            if _is_object(value):
                objects[key] = value
            else:
                data.append(key)
        return {"module": module, "data": data, "objects": objects}

    def _refer(self, value: object) -> object:
        """A reference to an object that stays here: its number, kind and name, and the parameters of a function."""
        self._objects.append(value)
        kind = "function" if isinstance(value, FunctionType | MethodType) else "object"
        name = getattr(value, "__name__", None) or type(value).__name__
        return [len(self._objects) - 1, kind, str(name), _parameters(value) if kind == "function" else None]


def _is_object(value: object) -> bool:
    """Whether a global is not plain data, as far as its type shows."""
    return callable(value) or type(value).__module__ not in ("builtins", "numpy")


def _parameters(function: object) -> list[list[object]] | None:
    """The name and kind of each parameter, and whether it has a default; None if they are unknown."""
    if not callable(function):
        return None
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[each.name, int(each.kind), each.default is not each.empty] for each in found]


def _described(error: BaseException) -> dict[str, object]:
    """An exception as plain data: its built-in class, text, arguments and traceback."""
    kinds = (kind for kind in type(error).__mro__ if kind.__module__ == builtins.__name__)
    own = error.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename == __file__:
        own = own.tb_next
    trace = "".join(traceback.format_exception(type(error), error, own, limit=20))[-4000:]
    told: dict[str, object] = {"kind": next(kinds).__name__, "text": str(error)[:2000], "trace": trace}
    arguments = tuple(each if isinstance(each, str | int | float | None) else str(each) for each in error.args)
    return {**told, "arguments": tuple(each[:2000] if isinstance(each, str) else each for each in arguments[:5])}


def _run_as_script(program: str, path: str, arguments: list[str], given: bytes) -> tuple[int, bytes, bytes]:
    """Run the program in a process of its own as ``__main__``; returns its exit code, output and errors."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        source.write(given)
        source.seek(0)
        child = os.fork()
        if child == 0:
            for place, file in enumerate((source, output, errors)):
                os.dup2(file.fileno(), place)
            os.closerange(QUESTIONS, ANSWERS + 1)
            os._exit(_as_main(lambda names: exec(compile(program, path, "exec"), names), path, arguments))  # noqa: S102
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return code, output.read(_OUTPUT), errors.read(_OUTPUT)


def _as_main(execute: Callable[[dict[str, object]], None], path: str, arguments: list[str]) -> int:
    sys.argv = [path, *arguments]
    sys.stdin, sys.stdout, sys.stderr = (open(place, mode) for place, mode in enumerate("rww"))  # noqa: PTH123, SIM115
    code = 0
    try:
        execute({"__name__": "__main__", "__file__": path, "__builtins__": builtins})
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - like an interpreter
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code & 0xFF
