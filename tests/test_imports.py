"""Which rooms may use which: imports point down only (the picture at the head of docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "flowevolve"

TIERS: list[set[str]] = [
    {"_util"},
    {"core"},
    {"llm", "sandbox", "tasks", "vllm", "experience"},
    {"programs"},
    {"prompts", "policies"},
    {"stages", "archives", "engine", "sim", "gateway", "problems"},
    {"config", "algorithms", "journal", "telemetry"},
    {"page"},
    {"runner"},
    {"cli", "compat"},
]
"""From the bottom up. A room may use itself and every room of the tiers below it."""

NEIGHBOURS: set[tuple[str, str]] = set()
"""Which room may use which other one of its own tier."""

TIERS_OF_THE_PAGE: list[set[str]] = [
    {"assets", "tables"},
    {"blame", "projection"},
    {"reading"},
    {"figures", "live", "report", "trace"},
]
"""Those of the rooms within `page/`, of which the same is true."""
TIERS_OF_LLM: list[set[str]] = [
    {"usage", "scheduling"},
    {"transports"},
    {"client"},
]
"""Those of the rooms within `llm/`."""

FRONT_DOORS = {"", "__main__"}
"""The package itself and ``python -m flowevolve``, which may use everything."""


def room(module: str, within: str = "flowevolve") -> str:
    """The folder below a package, ``flowevolve`` itself if no other is said, that a module in the package is in."""
    return module.removeprefix(within).removeprefix(".").partition(".")[0]


def modules() -> dict[str, Path]:
    paths = [*PACKAGE.rglob("*.py"), *PACKAGE.glob("stages/*.py"), *PACKAGE.glob("policies/*.py")]
    names = {path: ".".join(["flowevolve", *path.relative_to(PACKAGE).with_suffix("").parts]) for path in paths}
    return {name.removesuffix(".__init__"): path for path, name in sorted(names.items())}


def imports(path: Path) -> set[str]:
    """The modules of ours that a module imports anywhere when it runs; not those for type checkers alone."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "flowevolve":
            found.update(f"flowevolve.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name in found if name.startswith("flowevolve")}


def test_every_room_has_a_tier() -> None:
    assert {room(name) for name in modules()} - FRONT_DOORS == set().union(*TIERS)


def test_imports_point_down() -> None:
    tier_of = {name: tier for tier, names in enumerate(TIERS) for name in names}
    wrong = [
        f"{module} imports {imported}"
        for module, path in modules().items()
        if (here := room(module)) not in FRONT_DOORS
        for imported in sorted(imports(path))
        if (there := room(imported)) != here
        and (here, there) not in NEIGHBOURS
        and (there in FRONT_DOORS or tier_of[there] >= tier_of[here])
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("within", "tiers"), [("flowevolve.page", TIERS_OF_THE_PAGE), ("flowevolve.llm", TIERS_OF_LLM)]
)
def test_imports_within_a_room_point_down(within: str, tiers: list[set[str]]) -> None:
    tier_of = {name: tier for tier, names in enumerate(tiers) for name in names}
    inside = {module: path for module, path in modules().items() if module.startswith(f"{within}.")}
    assert {room(module, within) for module in inside} == set(tier_of)
    wrong = [
        f"{module} imports {imported}"
        for module, path in inside.items()
        for imported in sorted(imports(path))
        if imported.startswith(f"{within}.")
        and (here := room(module, within)) != (there := room(imported, within))
        and tier_of[there] >= tier_of[here]
    ]
    assert wrong == []
