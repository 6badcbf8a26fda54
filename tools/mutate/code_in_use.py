"""Replaces the code of functions in modules that are already imported."""

from __future__ import annotations

import ast
import builtins
import gc
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType

from tools.mutate.changes import Function, Source

Name = tuple[str, int]
"""The qualified name of a function, and its first line, because a property and its setter have the same name."""
MARK = "__reached__"


class CodeInUse:
    """The functions of a module, wherever they are: in classes, properties, decorators and tables."""

    def __init__(self, module: ModuleType) -> None:
        self._functions = [
            each for each in gc.get_objects() if type(each) is FunctionType and each.__globals__ is vars(module)
        ]

    def replace(self, module: CodeType) -> None:
        """Give each function the code that it has in the compiled module."""
        codes = dict(_functions_of(module))
        for function in self._functions:
            code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code != function.__code__:
                function.__code__ = code


def _functions_of(code: CodeType) -> Iterator[tuple[Name, CodeType]]:
    """The functions of a module and of its classes, without nested ones."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield (constant.co_qualname, constant.co_firstlineno), constant
            else:
                yield from _functions_of(constant)


def marked(source: Source) -> CodeType:
    """The module's code, in which every statement of a function first reports that it is reached."""
    _Marks(source.module).visit(source.tree)
    return compile(ast.fix_missing_locations(source.tree), source.path, "exec")


def on_reached(call: Callable[[tuple[str, int]], None]) -> None:
    """Call this with the module and the line whenever a marked statement is reached."""
    setattr(builtins, MARK, call)


class _Marks(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self._module = module
        self._inside = 0

    def visit(self, node: ast.AST) -> ast.AST:
        self._inside += isinstance(node, Function)
        self.generic_visit(node)
        if self._inside:
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    setattr(node, name, list(self._with_marks(value)))
        self._inside -= isinstance(node, Function)
        return node

    def _with_marks(self, statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in statements:
            place = ast.Tuple([ast.Constant(self._module), ast.Constant(statement.lineno)], ast.Load())
            mark = ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), [place], []))
            yield ast.copy_location(mark, statement)
            yield statement
