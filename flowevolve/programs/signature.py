"""The functions of a program and the arguments they take, read from its source without running it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flowevolve._util.errors import InputError


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a function, where a call gives them by name."""

    needed: tuple[str, ...]
    """The parameters without a default, positional-only ones included."""
    known: tuple[str, ...]
    open: bool
    """Whether the function also takes arguments of any other name (``**kwargs``)."""
    decorated: bool
    """Whether the function has a decorator, which may have changed what it takes."""


def signatures(source: str) -> Mapping[str, Signature]:
    """Return the signatures of the functions at the top level of a Python program, by name and in source order.

    Raises:
        SyntaxError: if the source is not valid Python.
        ValueError: if the source contains null characters.
    """
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {each.name: _signature(each) for each in functions}


def check_entry(source: str, entry: str, where: str) -> None:
    """Check that a program's function is not misspelt. The check passes if no function of the program has a similar
    name: some algorithms can start from a program that lacks its function.

    Raises:
        InputError: if the name stands nowhere in the program, which has a function with a similar one.
    """
    try:
        functions = list(signatures(source))
    except (SyntaxError, ValueError):
        return
    if entry not in source and (similar := difflib.get_close_matches(entry, functions, n=1)):
        raise InputError(f"{where}: the program has no function {entry!r}; did you mean {similar[0]!r}?")


def check_call(source: str, entry: str, given: Collection[str], where: str) -> None:
    """Check that a program's function can be called with arguments of these names. The check passes if the function is
    decorated or can't be found in the source.

    Raises:
        InputError: if the function does not take one of them, or needs further ones.
    """
    try:
        signature = signatures(source).get(entry)
    except (SyntaxError, ValueError):
        return  # such a seed fails when it is run, and some algorithms can start from a failing seed
    if signature is None or signature.decorated:
        return
    if missing := [name for name in signature.needed if name not in given]:
        example = ", ".join(f"{name} = …" for name in signature.needed)
        raise InputError(
            f"{where}: the function {entry} needs {', '.join(missing)}; give its arguments by name, "
            f"a case each: cases = [{{ {example} }}]"
        )
    if not signature.open and (further := [name for name in given if name not in signature.known]):
        takes = ", ".join(signature.known) or "no arguments"
        raise InputError(f"{where}: the function {entry} has no parameter {', '.join(further)}; it takes {takes}")


def _signature(function: ast.FunctionDef) -> Signature:
    arguments = function.args
    plain = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    needed = plain[: len(plain) - len(arguments.defaults)]
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needed += [each.arg for each, default in by_name if default is None]
    known = [each.arg for each in (*arguments.args, *arguments.kwonlyargs)]
    return Signature(tuple(needed), tuple(known), arguments.kwarg is not None, bool(function.decorator_list))
