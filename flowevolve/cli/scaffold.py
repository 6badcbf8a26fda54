"""New packages that plug something in, from the templates that ship (``templates/``)."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

from flowevolve._util.errors import InputError
from flowevolve.runner.registries import ALGORITHMS, TASKS

NAMES: Mapping[str, Callable[[], list[str]]] = {"algorithm": ALGORITHMS.names, "task": TASKS.names}
"""The kinds of packages that have templates, and what returns the names that are taken."""


def scaffold(kind: str, name: str, folder: Path | None = None) -> Path:
    """Write a package with a working algorithm or task into ``folder``, by default one of that name here.

    Raises:
        InputError: if the name can't be that of a module or is taken, or the folder is not empty.
    """
    module = name.replace("-", "_")
    folder = Path(module) if folder is None else folder
    class_name = "".join(part.capitalize() for part in module.split("_"))
    known = {"name": module, "package": module.replace("_", "-"), "class_name": class_name}
    _check_folder(folder)
    _check_name(kind, name, module, class_name)
    written = {
        template.name.removesuffix(".txt").replace("NAME", module): template.read_text("utf-8")
        for template in (files("flowevolve.cli") / "templates" / kind).iterdir()
    }
    if any(re.search(rf"\b{class_name}\b", text) for text in written.values()):
        raise InputError(f"{name}: the package would use the name {class_name} for two things; choose another name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in written.items():
            (folder / file).write_text(Template(text).substitute(known), "utf-8")
    except OSError as error:
        raise InputError(f"{folder} can't be written: {error.strerror}. Name another folder with --dir") from None
    return folder


def _check_name(kind: str, name: str, module: str, class_name: str) -> None:
    keywords = keyword.iskeyword(module) or keyword.iskeyword(class_name)
    if keywords or not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", module):
        raise InputError(
            f"{name!r} can't be the name of a package; give lower-case words joined by _, such as hill_climb"
        )
    if module in NAMES[kind]():
        raise InputError(f"{name}: the {kind} {module!r} exists already; choose another name")
    spec = find_spec(module)
    if module in sys.stdlib_module_names or (spec is not None and spec.origin is not None):  # None: any folder
        raise InputError(f"{name}: there is a Python module of this name already; choose another name")


def _check_folder(folder: Path) -> None:
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{folder} exists already and is not overwritten; name another folder with --dir")
