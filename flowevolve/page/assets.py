"""The page itself: its modules joined into one script, its styles, and the policy that lets nothing else in."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from posixpath import dirname, join, normpath

_STATIC = files("flowevolve.page").joinpath("static")
MAIN = "main.js"
VENDOR = "vendor/"
_IMPORT = re.compile(r'^import (?:(\w+)|\{([^}]*)\}|\* as (\w+)) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (async function|function\*?|class|const) (\w+)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*[\s\S]*?\*/)\n", re.MULTILINE)
"""A comment on lines of its own."""
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
"""Indentation, on which no text of the page depends, as htm joins lines."""
_FORBIDDEN = re.compile(r"^(?:export default|export \{|import )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """The page as HTML, and the content security policy (CSP) that it contains."""

    html: str
    policy: str


def page(data: Sequence[str] = (), *, connect: bool = False) -> Page:
    """The page with the base64 ``data`` that it reads, or one that may ``connect`` to the server that it came from."""
    script, style = joined_script(), joined_style()
    allowed = "'self'" if connect else "'none'"
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        f"connect-src {allowed}; base-uri 'none'; form-action 'none'"
    )
    blocks = "\n".join(f'<script type="application/gzip" class="data">{each}</script>' for each in data)
    parts = {"POLICY": policy, "STYLE": style, "DATA": blocks, "SCRIPT": script}
    return Page(re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("index.html")), policy)


def joined_style() -> str:
    """The page's own styles, and then those of the views."""
    views = sorted(each.name for each in _STATIC.joinpath("views").iterdir() if each.name.endswith(".css"))
    return "\n".join(map(_read, ["style.css", *(f"views/{name}" for name in views)]))


def joined_script() -> str:
    """All modules that the main one imports, each after those that it imports, and each in a function of its own."""
    order: dict[str, str] = {}
    _visit(MAIN, order, ())
    script = "\n".join(["const modules = {};", *order.values()])
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a module holds </script or <!--, which would end the script; write it in two parts")
    return script


def _visit(path: str, order: dict[str, str], above: tuple[str, ...]) -> None:
    if path in order:
        return
    if path in above:
        raise ValueError(f"{path}: imports itself, by way of {', '.join(above)}")
    source = _read(path)
    if path.startswith(VENDOR):
        order[path] = _wrapped(path, f"const module = {{exports}};\n{source}")
        return
    for found in _IMPORT.finditer(source):
        _visit(_target(path, found[4]), order, (*above, path))
    order[path] = _wrapped(path, _as_function(path, source))


def _as_function(path: str, source: str) -> str:
    """A module's source with its imports and exports written as plain statements."""

    def imported(found: re.Match[str]) -> str:
        module = f'modules["{_target(path, found[4])}"]'
        names = found[3] or f"{{ {(found[2] or '').replace(' as ', ': ').strip()} }}"
        return f"const {names} = {module};"

    exported = [found[2] for found in _EXPORT.finditer(source)]
    plain = _EXPORT.sub(r"\1 \2", _IMPORT.sub(imported, _COMMENT.sub("", source)))
    if wrong := _FORBIDDEN.search(plain):
        raise ValueError(
            f"{path}: {plain[wrong.start() :].splitlines()[0]}: see static/README.md for the forms of import and export"
        )
    plain = _INDENT.sub("", plain)
    return f'"use strict";\n{plain}\nObject.assign(exports, {{ {", ".join(exported)} }});'


def _wrapped(path: str, body: str) -> str:
    return f'modules["{path}"] = {{}};\n(function (exports) {{\n{body}\n}}).call(globalThis, modules["{path}"]);'


def _target(path: str, imported: str) -> str:
    return normpath(join(dirname(path), imported))


def _read(path: str) -> str:
    return _STATIC.joinpath(path).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
