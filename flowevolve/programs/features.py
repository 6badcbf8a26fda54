"""Features of Python programs as numbers: the descriptors that archives of programs are built on."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DECISIONS = (ast.If, ast.IfExp, *_LOOPS, ast.ExceptHandler, ast.Assert, ast.match_case)


def _count(*kinds: type[ast.AST]) -> Callable[[ast.AST, str], float]:
    return lambda tree, source: float(sum(isinstance(node, kinds) for node in ast.walk(tree)))


def _cyclomatic(tree: ast.AST, source: str) -> float:
    """One, plus one for every decision, for every operand of ``and`` and ``or`` except the first, and for every clause
    of a comprehension.
    """
    found = 1
    for node in ast.walk(tree):
        if isinstance(node, _DECISIONS):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
    return float(found)


def _nesting(tree: ast.AST, source: str) -> float:
    """The depth of the most deeply nested loop."""
    deepest = 0
    level: list[tuple[ast.AST, int]] = [(tree, 0)]
    while level:
        node, depth = level.pop()
        depth += isinstance(node, _LOOPS)
        deepest = max(deepest, depth)
        level += [(child, depth) for child in ast.iter_child_nodes(node)]
    return float(deepest)


FEATURES: Mapping[str, Callable[[ast.AST, str], float]] = {
    "cyclomatic_complexity": _cyclomatic,
    "loop_count": _count(*_LOOPS),
    "loop_nesting": _nesting,
    "branch_count": _count(ast.If, ast.IfExp, ast.match_case),
    "comparison_count": _count(ast.Compare),
    "call_count": _count(ast.Call),
    "math_operators": _count(ast.BinOp, ast.UnaryOp, ast.AugAssign),
    "comprehension_count": _count(*_COMPREHENSIONS),
    "subscript_count": _count(ast.Subscript),
    "length": lambda tree, source: float(len(source)),
}
"""The function that computes each feature from a syntax tree and its source. ``length`` is in characters."""
_GREATEST = {"loop_nesting"}
"""Features of which the maximum over several files is taken; all others are summed."""


def program_features(files: Mapping[str, str], names: Sequence[str]) -> dict[str, float] | None:
    """The named features over all files of a program; None if a file does not parse.

    If there are several files, only those in Python (``.py``) count; the result is None if there are none of these.

    Raises:
        KeyError: if one of the names is not that of a feature.
    """
    sources = [text for name, text in files.items() if len(files) == 1 or name.endswith(".py")]
    found = [features(source, names) for source in sources]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return {name: (max if name in _GREATEST else sum)(each[name] for each in known) for name in names}


def features(source: str, names: Sequence[str]) -> dict[str, float] | None:
    """The named features of one file; None if it does not parse.

    Raises:
        KeyError: if one of the names is not that of a feature.
    """
    wanted = {name: FEATURES[name] for name in names}
    tree = _parsed(source)
    if isinstance(tree, str):
        return None
    return {name: feature(tree, source) for name, feature in wanted.items()}


def syntax_error(source: str) -> str | None:
    """The error that keeps Python from compiling a program, in one line; None if there is none."""
    tree = _parsed(source)
    return tree if isinstance(tree, str) else None


def same_but_for_imports(old: str, new: str) -> bool:
    """Whether two programs compile and differ only in top-level imports, comments on lines of their own, blank lines
    and trailing spaces.
    """
    one, other = _without_imports(old), _without_imports(new)
    return one is not None and one == other


def _without_imports(source: str) -> list[str] | None:
    tree = _parsed(source)
    if isinstance(tree, str):
        return None
    imports = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    left_out = {number for each in imports for number in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    lines = [line.rstrip() for number, line in enumerate(source.split("\n"), 1) if number not in left_out]
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def compiles(tree: ast.Module) -> bool:
    """Whether Python can compile a syntax tree. Some sources can be parsed but not compiled."""
    return not isinstance(_parsed("", tree), str)


def _parsed(source: str, parsed: ast.Module | None = None) -> ast.Module | str:
    """The syntax tree, or the error's message. ``parsed`` is the tree if it is known already."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parsed or ast.parse(source)
            compile(tree, "program.py", "exec", dont_inherit=True)  # also sees a misplaced return
    except SyntaxError as error:
        place = "" if error.lineno is None else f"line {error.lineno}: "
        return f"{place}{error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "nested too deep"
    return tree
