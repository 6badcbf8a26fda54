"""Finds out what the files of a problem folder import that is not available in the sandbox."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.problems.folders.files import parsed
from flowevolve.programs.modules import files_of, is_installed

_NETWORK = {
    *("aiohttp", "anthropic", "boto3", "datasets", "google", "huggingface_hub", "httpx", "litellm", "openai"),
    *("requests", "vllm", "wandb"),
}
_GPU = {"cupy", "mlx", "numba.cuda", "pycuda", "triton"}
_PACKAGES = {"cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Packages to install, by the module's name where that is another."""
_MAY_NOT_MATTER = (ast.Try, ast.TryStar, ast.If, ast.Match, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
"""Statements and expressions whose insides may not be executed, or may fail without consequences."""


@dataclass(frozen=True, slots=True)
class Import:
    module: str
    file: str
    sure: bool
    """Whether the import is executed as soon as the file is imported, and nothing catches its failure."""

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]


def check(folder: Path, files: Sequence[Path], supplied: Collection[str] = ()) -> list[str]:
    """Check what files, and the files of the folder that they import, need. Returns a line for each doubtful import.

    ``supplied`` are modules for which the sandbox provides a stand-in.

    Raises:
        InputError: naming everything that is certainly needed and not available.
    """
    imports = [each for each in all_imports(folder, files) if each.module not in supplied]
    stood_in = {name.partition(".")[0] for name in supplied}
    missing = [each for each in imports if each.package in stood_in or not is_installed(each.package)]
    placed = {each: place for each in missing if (place := _below(folder, each.package)) is not None}
    missing = [each for each in missing if each not in placed]
    sure = dict.fromkeys(_said(each, each.package in stood_in) for each in missing if each.sure)
    if sure:
        raise InputError(f"{folder}: it can't be run here: {'; '.join(sure)}")
    doubtful = [f"{_said(each, each.package in stood_in)}; this matters only if it is imported" for each in missing]
    doubtful += [
        f"{each.file} needs {each.package}, and has to add the folder of {place} to sys.path"
        for each, place in placed.items()
    ]
    present = [each for each in imports if each not in missing and _beyond(each)]
    return list(
        dict.fromkeys([*doubtful, *(f"{each.file} imports {each.module}: {_beyond(each)}" for each in present)])
    )


def all_imports(folder: Path, files: Sequence[Path]) -> list[Import]:
    """The imports of files, and of the modules of the folder that they import; standard modules are left out."""
    found: list[Import] = []
    waiting, seen = list(files), set(files)
    while waiting:
        file = waiting.pop(0)
        for each in imports_of(file):
            if files_of(folder, each.package):
                local = [file for file in _executed(folder, each.module) if file not in seen]
                waiting += local
                seen.update(local)
            elif each.package not in sys.stdlib_module_names:
                found.append(each)
    return found


def imports_of(file: Path) -> list[Import]:
    if file.suffix != ".py":
        return []
    found: list[Import] = []

    def visit(node: ast.AST, sure: bool) -> None:
        match node:
            case ast.Import(names):
                found.extend(Import(alias.name, file.name, sure) for alias in names)
            case ast.ImportFrom(str(module), level=0):
                found.append(Import(module, file.name, sure))
        certain = sure and not (isinstance(node, _MAY_NOT_MATTER) or _suppresses(node))
        for child in ast.iter_child_nodes(node):
            visit(child, certain)

    visit(parsed(file), True)
    return found


def _suppresses(node: ast.AST) -> bool:
    """Whether a node is a ``with`` statement under ``contextlib.suppress``."""
    return isinstance(node, ast.With) and any(_is_suppress(item.context_expr) for item in node.items)


def _is_suppress(node: ast.expr) -> bool:
    match node:
        case ast.Call(ast.Name("suppress") | ast.Attribute(attr="suppress")):
            return True
    return False


def _executed(folder: Path, module: str) -> list[Path]:
    """The folder's files that importing a module executes: its own, and those of the packages that it is in."""
    names = module.split(".")
    places = [folder.joinpath(*names[:number]) for number in range(1, len(names) + 1)]
    return [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]


def _below(folder: Path, package: str) -> Path | None:
    """Where below the folder there is a module of this name, which an evaluator may put on sys.path."""
    found = sorted([*folder.glob(f"**/{package}.py"), *folder.glob(f"**/{package}/__init__.py")])
    return found[0].relative_to(folder) if found else None


def _said(need: Import, stood_in: bool) -> str:
    beyond = _beyond(need)
    if stood_in:
        return f"{need.file} needs {need.module}, which flowevolve has no stand-in for"
    mend = f"pip install {_PACKAGES.get(need.package, need.package)}"
    return f"{need.file} needs {need.package}, which is not installed ({mend})" + (f", and {beyond}" if beyond else "")


def _beyond(need: Import) -> str:
    if need.package in _NETWORK:
        return "there is no network in the sandbox"
    return "there is no GPU in the sandbox" if {need.package, need.module} & _GPU else ""
