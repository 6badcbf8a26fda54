"""Remarks that stand for code which was left out, such as ``# ... rest of the code unchanged``."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from flowevolve.programs.names import is_docstring, parsed

_DOTS = r"(?:\.{3}|…)"
_THINGS = (
    r"(?:code|program|functions?|methods?|class(?:es)?|implementation|logic|file|body|imports|helpers?|definitions?|"
    r"lines|content)"
)
_REST = r"(?:the )?(?:rest|remainder) of (?:the |your |this )?(?:\w+ )?|(?:the )?remaining "
_LEFT = (
    r"(?:the )?(?:rest|remainder) of (?:the |your |this )?(?:\w+ )?"
    r"|(?:the )?(?:remaining|existing|previous|original|other|unchanged) (?:\w+ )?"
)
_SAME = r"(?:unchanged|the same|same as (?:before|above)|as before|as above|here|goes here|omitted(?: for brevity)?)"
_ELIDED = re.compile(
    rf"^\s*(?:#|//|/\*|<!--|--)+\s*[\[(]?(?:{_DOTS}[\s.…\])*/]*$"
    rf"|{_DOTS}\s*[\[(]?\s*(?:{_LEFT}|{_THINGS}|{_SAME}|unchanged|same|keep|omitted)\b"
    rf"|(?:{_LEFT}){_THINGS}\s*(?:{_DOTS}|(?:remains?|stays?|is|are|continues?)?\s*{_SAME})[\s.\])*/]*$"
    rf"|(?:{_REST}){_THINGS}[\s.\])*/]*$"
    rf"|(?:the )?(?:same|unchanged) {_THINGS}? ?(?:as (?:before|above)|{_DOTS})"
    rf"|{_THINGS} (?:remains?|stays?|is|are) (?:unchanged|the same)\b"
    r"|[（(]?(?:其余|其他|其它|剩余)[^\n]{0,6}(?:代码|程序|函数|方法|实现)[^\n]{0,6}(?:不变|省略|同上|相同|一样)[\s.。)）*/]*$)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"^[ \t]*(?:#|//)+\s*[\[(]?(?:the )?`?(?P<name>\w+)(?:\(\))?`?(?: (?:function|method|class))?"
    r"(?: (?:is|remains?|stays?|left|kept))? (?:unchanged|(?:the same )?as (?:above|before|in the original)|the same)"
    r"[\s.\])]*$",
    re.IGNORECASE | re.MULTILINE,
)
_DEFINED = re.compile(r"^[ \t]*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_UNCHANGED = re.compile(r"#.*\b(?:unchanged|as (?:before|above)|as in the original)\b", re.IGNORECASE)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def elision(text: str, known: str = "") -> str | None:
    """The first line of a text that stands for code that was left out; lines of the ``known`` text don't count."""
    lines = {line.strip() for line in known.split("\n")}
    found = (line.strip() for line in text.split("\n") if _ELIDED.match(line))
    return next((line for line in found if line not in lines), None)


def named_elision(program: str, parent: str) -> str | None:
    """The first line in which a whole program says that a function or class is unchanged that only its parent has."""
    named = list(_NAMED.finditer(program))
    if not named:
        return None
    words, defined = Counter(_WORD.findall(program)), set(_DEFINED.findall(parent))
    only = (found[0].strip() for found in named if words[found["name"]] == 1 and found["name"] in defined)
    return next((line for line in only if line not in parent), None)


def emptied(program: str, parent: str) -> str | None:
    """The first line of a function of a Python program that has a body in its parent alone: here it is only ``...``, or
    ``pass`` with a remark that it is unchanged.
    """
    old, new = parsed(parent), parsed(program)
    if old is None or new is None:
        return None
    lines, before = program.split("\n"), parent.split("\n")
    found = list(_functions(new))
    whole = {name for name, each in found if not _is_empty(each, lines)}
    lost = {name for name, each in _functions(old) if not _is_empty(each, before)} - whole
    return next((lines[each.lineno - 1].strip() for name, each in found if name in lost), None)


def _functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    """All functions, each with its name behind those of the classes and functions that it is in."""
    for each in ast.iter_child_nodes(tree):
        name = f"{within}{each.name}" if isinstance(each, Function | ast.ClassDef) else None
        if isinstance(each, Function):
            yield f"{within}{each.name}", each
        yield from _functions(each, within if name is None else f"{name}.")


def _is_empty(function: Function, lines: list[str]) -> bool:
    match [each for each in function.body if not is_docstring(each)]:
        case [ast.Expr(ast.Constant(value))]:
            return value is ...
        case [ast.Pass()]:
            return any(map(_UNCHANGED.search, lines[function.lineno - 1 : function.end_lineno]))
    return False
