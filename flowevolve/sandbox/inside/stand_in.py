"""Runs in an evaluator's sandbox: the stand-in that the evaluator finds in place of the program.

The program's text is not there. Its file contains `TEXT` instead, which works however an evaluator uses the file:
importing it, executing its text, or starting an interpreter for it. It fills the importing module with functions that
have the program's names and run in the program's sandbox (`flowevolve.sandbox.inside.served`); only plain data is
exchanged.
"""

from __future__ import annotations

import builtins
import fcntl
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FunctionType

from flowevolve.sandbox.inside import plain

ANSWERS, QUESTIONS = 4, 5
"""The descriptors of the pipes for answers and for questions, in the evaluator's first process."""
FILE = "candidate_program.py"
"""The name of the program's file. It differs from the seed's in the folder, which evaluators could import instead."""
TEXT = f"""\
import sys, types
for name in ("flowevolve", "flowevolve.sandbox", "flowevolve.sandbox.inside"):
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [{str(Path(__file__).parent)!r}] if name.endswith("inside") else []
from flowevolve.sandbox.inside import stand_in
__getattr__ = stand_in.load(globals())
"""
"""The stand-in program."""
_VARIABLE = "FLOWEVOLVE_PROGRAM"
"""The environment variable from which an evaluator's other processes learn about its first one."""
_NUMBER = "__flowevolve_number__"
"""The attribute in which stand-ins keep the number of their object in the program's process."""
_OWN = ("name", "sys", "types", "stand_in")
"""Names in the stand-in program that do not belong to the program."""
_NO_READERS = ("<frozen importlib._bootstrap_external>", "<frozen runpy>", "shutil.py", "tempfile.py")
"""Files whose code opens the program's file but does not examine its text."""


class _Text:
    """Counts how often the program's text was read, and how often it was executed without being imported."""

    read = 0
    executed = 0


def offer(standard_output: bool) -> None:
    """Make this process the one through which others reach the program.

    ``standard_output`` says whether a command's output is its verdict, so that the program must not write there.
    """
    folder = tempfile.mkdtemp(prefix="stand-in-")
    os.environ[_VARIABLE] = f"{os.getpid()}:{int(standard_output)}:{folder}"
    sys.addaudithook(_count_reading)


def notes() -> list[str]:
    """Notes about what an evaluator tried that is impossible while the program is in a sandbox of its own."""
    file = _folder() / "notes"
    found = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    if _Text.read > _Text.executed:
        found.append("the evaluator reads the program's text")
    return list(dict.fromkeys(found))


def load(names: dict[str, object]) -> Callable[[str], object]:
    """Put the program's names into the namespace of its stand-in module; returns the module's ``__getattr__``.

    If the module is run as a script, the program is run as a script, and this process ends as it did.
    """
    called = str(names.get("__name__", "program"))
    if called == "__main__":
        _run_as_script()
    for name in _OWN:
        names.pop(name, None)
    loaded = _ask("load", called)
    match loaded:
        case {"module": module, "data": list(data), "objects": dict(objects)}:
            names.update(objects)
        case _:
            raise RuntimeError("the program's process says what is no module")
    if names.get("__spec__") is None:  # its text is executed, so nobody will ask for attributes
        _Text.executed += 1
        names.update({name: _ask("get", (module, name)) for name in data})

    def attribute(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _ask("get", (module, name))

    return attribute


class StandIn:
    """Stands in for an object that is in the program's process."""

    def __init__(self, number: int, name: str) -> None:
        self.__dict__[_NUMBER] = number
        self.__dict__["__name__"] = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"{self.__dict__['__name__']} is held apart, and {name} of it is not to be had")
        return _ask("get", (self, name))

    def __call__(self, *arguments: object, **keywords: object) -> object:
        return _ask("call", (self, arguments, keywords))

    def __repr__(self) -> str:
        return f"<{self.__dict__['__name__']}, held apart>"


def _ask(what: str, of: object) -> object:
    """Ask the program's process, and return its answer. Only one thread of all the evaluator's processes asks at a
    time.
    """
    asked = f"{os.getpid()}-{os.urandom(8).hex()}"
    try:
        question = plain.packed({"id": asked, "ask": what, "of": of}, _number)
    except plain.NotPlainError as error:
        note(str(error))
        raise TypeError(f"a program that is held apart can only be given plain data: {error}") from None
    with _alone():
        answers, questions = _pipes()
        try:
            plain.send(questions, question)
            answer = _answer(answers, asked)
        except (EOFError, OSError):
            raise RuntimeError("the program's process ended before it answered") from None
        except ValueError as wrong:
            raise RuntimeError(f"an answer of the program's process can't be read: {wrong}") from None
    match answer:
        case {"error": dict(told)}:
            raise _exception(told)
    return answer.get("value")


@contextmanager
def _alone() -> Iterator[None]:
    lock = os.open(_folder() / "lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _answer(answers: int, asked: str) -> Mapping[object, object]:
    """Raises: EOFError, ValueError as in `plain.receive`."""
    while True:
        match plain.receive(answers, _object):
            case {"id": answered, **answer}:
                if answered == asked:
                    return answer  # others are for those who stopped waiting
            case _:
                raise ValueError("it answers nothing that was asked")


def _exception(told: Mapping[object, object]) -> Exception:
    """An exception of the program, as one of its built-in class if that can be created from its arguments."""
    kind, arguments, trace = getattr(builtins, str(told.get("kind")), None), told.get("arguments"), told.get("trace")
    error: Exception = RuntimeError(f"{told.get('kind')}: {told.get('text')}")
    if isinstance(kind, type) and issubclass(kind, Exception) and isinstance(arguments, tuple):
        with suppress(TypeError, ValueError):
            error = kind(*arguments)
    error.add_note(f"In the program:\n{trace}".rstrip())
    return error


def _number(value: object) -> object:
    """The number of a stand-in for an object of the program. Other objects can't be passed to the program."""
    number = getattr(value, "__dict__", {}).get(_NUMBER) if isinstance(value, StandIn | FunctionType) else None
    if number is None:
        raise plain.NotPlainError(f"the evaluator hands the program a {type(value).__name__}")
    return number


def _object(told: object) -> object:
    """Create the stand-in for an object of the program."""
    match told:
        case [int(number), "function", str(name), parameters]:
            return _function(number, name, parameters)
        case [int(number), "object", str(name), _]:
            return StandIn(number, name)
    raise ValueError(f"no object: {told!r:.80}")


def _function(number: int, name: str, parameters: object) -> FunctionType:
    handle = StandIn(number, name)

    def stand_in(*arguments: object, **keywords: object) -> object:
        return handle(*arguments, **keywords)

    stand_in.__name__ = stand_in.__qualname__ = name
    stand_in.__dict__[_NUMBER] = number
    if isinstance(parameters, list):
        with suppress(TypeError, ValueError):
            stand_in.__dict__["__signature__"] = inspect.Signature([_parameter(*each) for each in parameters])
    assert isinstance(stand_in, FunctionType)
    return stand_in


def _parameter(name: str, kind: int, has_default: bool) -> inspect.Parameter:
    kinds = {int(each): each for each in inspect._ParameterKind}
    return inspect.Parameter(name, kinds[kind], default=... if has_default else inspect.Parameter.empty)


def note(what: str) -> None:
    with (_folder() / "notes").open("a", encoding="utf-8") as file:
        file.write(f"{' '.join(what.split())[:500]}\n")


@cache
def _place() -> tuple[int, bool, Path]:
    first, standard_output, folder = os.environ[_VARIABLE].split(":", 2)
    return int(first), standard_output == "1", Path(folder)


def _folder() -> Path:
    return _place()[2]


class _Opened:
    """The pipes as this process has opened them, if it is not the first one."""

    process = 0
    pipes = (-1, -1)


def _pipes() -> tuple[int, int]:
    first, this = _place()[0], os.getpid()
    if this == first:
        return ANSWERS, QUESTIONS
    if _Opened.process != this:
        ends = ((ANSWERS, os.O_RDONLY), (QUESTIONS, os.O_WRONLY))
        # Non-blocking, so that opening doesn't wait for a program that is gone.
        found = [os.open(f"/proc/{first}/fd/{end}", how | os.O_NONBLOCK | os.O_CLOEXEC) for end, how in ends]
        for each in found:
            os.set_blocking(each, True)
        _Opened.process, _Opened.pipes = this, (found[0], found[1])
    return _Opened.pipes


def _run_as_script() -> None:
    """Raises: SystemExit, with the exit code of the program's own process."""
    first, standard_output, _ = _place()
    if standard_output and _writes_the_verdict(first):
        note("the program itself prints what the command says")
        raise SystemExit("a program that is held apart can't print the command's verdict")
    match _ask("run", (sys.argv[1:], sys.stdin.buffer.read())):
        case (int(code), bytes(output), bytes(errors)):
            sys.stdout.flush()
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()
            sys.stderr.buffer.write(errors)
            sys.stderr.buffer.flush()
            raise SystemExit(code if code >= 0 else 128 - code)
    raise RuntimeError("the program's process says what is no end of a script")


def _writes_the_verdict(first: int) -> bool:
    """Whether this process's standard output is that of the command that the evaluator's first process started."""
    process = os.getpid()
    while True:
        status = Path(f"/proc/{process}/stat").read_bytes()
        parent = int(status.rpartition(b")")[2].split()[1])
        if parent in (first, 0, 1):
            break
        process = parent
    mine, its = os.fstat(1), Path(f"/proc/{process}/fd/1").stat()
    return (mine.st_dev, mine.st_ino) == (its.st_dev, its.st_ino)


def _count_reading(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or not str(arguments[0]).endswith(FILE):
        return
    mode, flags = arguments[1], arguments[2]
    if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & os.O_ACCMODE):
        return
    caller = sys._getframe(1).f_code.co_filename
    if not caller.endswith(_NO_READERS):
        _Text.read += 1
