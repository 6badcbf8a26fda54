"""Dependencies point one way: nothing imports what is above it (docs/architecture.md, "The parts")."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "flowevolve"

LAYERS: list[set[str]] = [
    {"_util", "errors", "kinds", "plugins"},
    {
        "artifact",
        "concurrency",
        "item_ids",
        "stop_reasons",
        "registry",
        "collector",
        "counts",
        "section",
        "llm.keys",
        "llm.types",
        "writer",
    },
    {"clock", "prompts", "playbook_prompts", "agents.reading", "events", "event_kinds", "budget", "llm", "pool"},
    {"item", "record", "assessment"},
    {"queue", "tasks", "memory", "core.sandbox_settings"},
    {"sim", "vllm", "backends", "sandbox", "programs", "problems", "agents", "compat.folders"},
    {"context", "core.policies", "stage", "policies"},
    {"algorithm", "archives"},
    {"playback", "work", "flows", "turns", "tally", "stages", "crew", "pause", "archived_pool"},
    {"recovery"},
    {"effects"},
    {"runtime"},
    {"executor"},
    {"lifecycle", "injection", "steps"},
    {"algorithms", "engine"},
    {"result", "store", "held_out", "credit"},
    {"telemetry", "terminal", "llm_section", "config"},
    {"roles", "prices"},
    {"build", "own_server"},
    {"clients"},
    {"run"},
    {
        "resume",
        "replay",
        "serve_command",
        "list_command",
        "new_command",
        "sandbox_command",
        "scaffold",
        "folder_run",
        "interrupts",
    },
    {"compat"},
    {"api", "cli", "__init__", "__main__"},
]
"""From the bottom up; a module may import its own layer and those below."""

NOTHING_OF_ALGORITHMS = {"llm", "store", "sim", "tasks", "sandbox", "vllm", "programs", "problems", "agents", "memory"}


def part_of(module: str) -> str:
    """The first name decides, but for what everybody shares of ``llm`` and ``agents``, and problems of other systems in
    ``compat``.
    """
    names = module.split(".")[1:]
    if names[:2] in (["llm", "types"], ["llm", "keys"], ["agents", "reading"], ["compat", "folders"]) or names[:1] == [
        "core"
    ]:
        return ".".join(names[:2])
    return names[0] if names else "__init__"


def imports_at_run_time(path: Path) -> set[str]:
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.startswith("flowevolve"))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("flowevolve"):
            found.update(
                f"{node.module}.{alias.name}" if node.module == "flowevolve" else node.module for alias in node.names
            )
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def modules() -> dict[str, Path]:
    paths = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.glob("stages/*.py")) + sorted(PACKAGE.glob("policies/*.py"))
    return {".".join(["flowevolve", *path.relative_to(PACKAGE).with_suffix("").parts]): path for path in paths}


def test_every_part_has_a_layer() -> None:
    known = set().union(*LAYERS)
    assert {part_of(name) for name in modules()} - {"core.__init__"} <= known


def test_dependencies_point_one_way() -> None:
    layer_of = {part: number for number, parts in enumerate(LAYERS) for part in parts}
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules().items()
        for imported in imports_at_run_time(path)
        if layer_of[part_of(imported)] > layer_of[part_of(name)]
    ]
    assert wrong == []


def test_lower_parts_know_nothing_of_algorithms() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules().items()
        if part_of(name) in NOTHING_OF_ALGORITHMS
        for imported in imports_at_run_time(path)
        if part_of(imported) in {"algorithms", "algorithm", "stages", "engine", "runtime"}
    ]
    assert wrong == []
