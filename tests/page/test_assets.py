"""The page's own files are what their lists and rules say."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

from flowevolve.page.assets import joined_script, joined_style

STATIC = files("flowevolve.page").joinpath("static")


def read(path: str) -> str:
    return STATIC.joinpath(path).read_text(encoding="utf-8")


def test_every_library_is_what_its_list_says() -> None:
    listed = dict(re.findall(r"^\| (\S+) \|.*\| `([0-9a-f]{64})` \|", read("vendor/README.md"), re.MULTILINE))
    here = {each.name: sha256(each.read_bytes()).hexdigest() for each in STATIC.joinpath("vendor").iterdir()}
    here.pop("README.md")
    assert listed == here


def test_the_script_has_each_module_once_before_those_that_import_it() -> None:
    script = joined_script()
    order = re.findall(r'^modules\["([^"]+)"\] = \{\};$', script, re.MULTILINE)
    assert len(order) == len(set(order))
    assert order[-1] == "main.js"
    views = {each.name for each in STATIC.joinpath("views").iterdir() if each.name.endswith(".js")}
    assert {f"views/{name}" for name in views} <= set(order)
    for found in re.finditer(r'= modules\["([^"]+)"\];', script):
        assert found[1] in order
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_nothing_in_the_page_writes_markup_from_texts() -> None:
    own = [path for path in (*STATIC.iterdir(), *STATIC.joinpath("views").iterdir()) if path.name.endswith(".js")]
    for path in own:
        source = path.read_text(encoding="utf-8")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in source, f"{path.name} has {forbidden}"


def test_the_styles_load_nothing() -> None:
    assert not re.findall(r"@import|url\((?!data:)", joined_style())
