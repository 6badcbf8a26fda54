"""The summary of a finished run, from its ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text


def summarize(result: Mapping[str, object]) -> RenderableType:
    """Tables of what a run did, and the best artifact's text."""
    head = Table(show_header=False, box=None, pad_edge=False)
    simulated = " (simulated: times and texts are a model's, not a real LLM's)" if result["backend"] == "sim" else ""
    llm, staleness, best, held_out = (_table(result[key]) for key in ("llm", "staleness", "best", "held_out"))
    minutes = _number(result["wall_seconds"]) / 60
    rate = f"{_number(result['proposals']) / minutes:.1f} per minute" if minutes else "-"
    head.add_row("run", f"{result['algorithm']} ({result['mode']}) on {result['task']}")
    head.add_row("backend", f"{result['backend']}{simulated}")
    if replayed := _table(result.get("replay")):
        head.add_row("replay", _replies(replayed))
    head.add_row("stopped by", f"{result['stop_reason']} after {_number(result['wall_seconds']):.1f} s")
    head.add_row("score", f"seed {_score(result['seed_score'])}, best {_score(best.get('score'))} ({best.get('id')})")
    if held_out:
        scores = f"seed {_score(held_out['seed_score'])}, best {_score(held_out['best_score'])}"
        head.add_row("held out", f"{scores} on {held_out['examples']} test examples")
    head.add_row("proposals", f"{result['proposals']} ({rate}), accepted {result['accepted']}")
    tokens = f"{llm['prompt_tokens']} prompt and {llm['completion_tokens']} completion tokens"
    head.add_row("LLM", f"{llm['requests']} requests ({llm['failed']} failed), {tokens}")
    if llm.get("cached_calls"):
        saved = f"{llm['cached_calls_tokens']} tokens not paid for again"
        head.add_row("cached", f"{llm['cached_calls']} calls answered by the response cache, {saved}")
    head.add_row("in flight", f"{_number(llm['mean_in_flight']):.1f} requests on average")
    head.add_row("staleness", _counts(staleness))
    for name in ("speculation", "racing"):
        counts = _table(result.get(name))
        if any(counts.values()):
            head.add_row(name, _counts(counts))
    parts: list[RenderableType] = [head, _stages(_table(result["stages"]))]
    for name, text in _table(best.get("components")).items():
        parts.append(Panel(Text(str(text)), title=f"best {name}", title_align="left"))
    return Group(*parts)


def _replies(replayed: Mapping[str, object]) -> str:
    said = f"of {replayed['of']}: {replayed['matched']} recorded replies and {replayed['stand_ins']} stand-ins"
    return f"{said}, so scores mean nothing" if replayed["stand_ins"] else said


def _stages(stages: Mapping[str, object]) -> Table:
    table = Table("stage", "in", "out", "discarded", "busy s", "queued s", "workers")
    for name, counts in stages.items():
        row = _table(counts)
        cells = [row["items_in"], row["items_out"], row["discarded"], row["busy_seconds"], row["wait_seconds"]]
        table.add_row(name, *map(str, cells), str(row["workers"]))
    return table


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _counts(table: Mapping[str, object]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in table.items())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _score(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else "-"
