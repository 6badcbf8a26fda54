"""Summarizes a finished run from its ``result.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from flowevolve._util.intervals import in_brackets, score_said
from flowevolve._util.words import counted
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.engine.fruitless import top_reasons
from flowevolve.telemetry.result_words import (
    changed_nothing,
    cut_off,
    how_many_failed,
    no_better,
    perfect_minibatches,
    reached_before,
    stopped_by,
    tested_on,
    too_little,
    unanswered,
)
from flowevolve.telemetry.role_replies import cut_said, empty_said, read_cut, read_empty

_EXAMPLE_CHARACTERS = 160
_WHY_EMPTY = "most often the server took the whole answer for thinking (see llm.enable_thinking), or filtered it"
Rows = Iterator[tuple[str, RenderableType]]
"""The rows of the first table: a name, and what is said of it."""


def summarize(result: Mapping[str, object]) -> RenderableType:
    """Tables of what a run did, and the text of its best artifact."""
    head = Table(show_header=False, box=None, pad_edge=False)
    llm, best = _table(result["llm"]), _table(result["best"])
    for name, said in chain(_run(result), _scores(result, best), _work(result), _calls(result, llm), _engine(result)):
        head.add_row(name, said)
    by_model = _table(llm.get("by_model"))
    models = [_models(by_model)] if len(by_model) > 1 else []
    parts: list[RenderableType] = [head, *models, _stages(_table(result["stages"]))]
    for name, text in _table(best.get("components")).items():
        parts.append(Panel(Text(str(text)), title=Text(f"best {name}"), title_align="left"))
    if trust := ScoreTrust.of(result.get("score_trust"), result.get("shared_because")):
        parts.append(Text(f"scores {trust}"))
    return Group(*parts)


def _run(result: Mapping[str, object]) -> Rows:
    """What was run, and why it ended."""
    simulated = ""
    if result["backend"] == "sim" and result["simulated"]:
        simulated = " (simulated: times and texts are a model's, not a real LLM's)"
    yield "run", f"{result['algorithm']} ({result['mode']}) on {result['task']}"
    yield "backend", f"{result['backend']}{simulated}"
    if replayed := _table(result.get("replay")):
        yield "replay", _replies(replayed)
    after = f" after {_number(result['wall_seconds']):.1f} s{reached_before(result)}"
    yield "stopped by", stopped_by(str(result["stop_reason"]), perfect_minibatches(result), after)
    if error := result.get("error"):
        yield "error", Text(str(error))


def _scores(result: Mapping[str, object], best: Mapping[str, object]) -> Rows:
    """How good the best candidate is, and what it is."""
    best_said = f"{score_said(best.get('score'))}{_interval(best.get('interval'))}"
    scores = f"seed {score_said(result['seed_score'])}, best {best_said}"
    length = f", {_number(best['characters']):,.0f} characters" if "characters" in best else ""
    which = f" ({best['id']}{length})" if best.get("id") else ""
    yield "score", f"{scores}{which}{_no_better(result['seed_score'], best)}"
    if fresh := best.get("fresh"):
        yield "fresh score", str(FreshScore.model_validate(fresh))
    if said := [str(best[key]) for key in ("name", "idea") if best.get(key)]:
        yield "best's change", Text(": ".join(said))
    if metrics := _table(best.get("metrics")):
        yield "best's metrics", ", ".join(f"{name} {_number(value):.4g}" for name, value in metrics.items())
    if held_out := _table(result["held_out"]):
        best_score = f"{score_said(held_out['best_score'])}{_interval(held_out.get('best_interval'))}"
        scores = f"seed {score_said(held_out['seed_score'])}, best {best_score}"
        examples, failed = (int(_number(held_out.get(name))) for name in ("examples", "failed"))
        yield "held out", f"{scores} {tested_on(examples, failed)}"


def _work(result: Mapping[str, object]) -> Rows:
    """How much was proposed and accepted, and what went wrong."""
    minutes = _number(result["wall_seconds"]) / 60
    rate = f"{_number(result['proposals']) / minutes:.1f} per minute" if minutes else "-"
    unchanged = changed_nothing(int(_number(result.get("unchanged"))))
    yield "proposals", f"{result['proposals']} ({rate}), accepted {result['accepted']}{unchanged}"
    if little := too_little(result):
        yield "take care", little
    if still_open := cut_off(result):
        yield "cut off", Text(still_open)
    if failed := how_many_failed(result):
        yield "failed", Text(failed)
    if reasons := _in_vain(_table(result["stages"])):
        yield "in vain", Text(reasons)


def _calls(result: Mapping[str, object], llm: Mapping[str, object]) -> Rows:
    """What was asked of the models, what it cost, and what came back."""
    tokens = f"{llm['prompt_tokens']} prompt and {llm['completion_tokens']} completion tokens"
    if llm.get("usage_estimated"):
        tokens = f"{tokens}, estimated for {_counted(llm['usage_estimated'], 'call')}"
    yield "LLM", f"{_counted(llm['requests'], 'request')} ({llm['failed']} failed), {tokens}"
    if silent := unanswered(result):
        yield "answers", silent
    if llm.get("cut_while_thinking"):
        yield (
            "cut",
            f"{_counted(llm['cut_while_thinking'], 'call')} while the model still thought: raise llm.thinking_tokens",
        )
    for role, count in read_cut(_table(llm.get("cut_replies"))).items():
        yield "cut", f"{cut_said(role, count)}: raise llm.roles.{role}.max_tokens"
    for role, empty in read_empty(_table(llm.get("empty_replies"))).items():
        yield "empty", f"{empty_said(role, empty)}: {_WHY_EMPTY}"
    if llm.get("cached_calls"):
        saved = f"{_counted(llm['cached_calls_tokens'], 'token')} not paid for again"
        yield "cached", f"{_counted(llm['cached_calls'], 'call')} answered by the response cache, {saved}"
    if llm.get("cost_usd"):
        unknown = "; what failed attempts cost is rarely known" if llm["failed"] or llm["retries"] else ""
        yield "cost", f"{_number(llm['cost_usd']):.4f} dollars{unknown}"
    yield from _traffic(llm)
    yield "in flight", f"{_number(llm['mean_in_flight']):.1f} requests on average"


def _engine(result: Mapping[str, object]) -> Rows:
    """How the engine and the server fared, and which replies could not be read."""
    if limit := _table(result.get("flow_limit")):
        yield "flows", f"at most {limit['flows']} open at last: {limit['reason']}"
    if server := _table(result.get("server")):
        yield "server", _server(server)
    yield "staleness", _counts(_table(result["staleness"]))
    for name in ("speculation", "racing"):
        counts = _table(result.get(name))
        if any(counts.values()):
            yield name, _counts(counts)
    yield from _unread(_table(result.get("replies")))


def _traffic(llm: Mapping[str, object]) -> Rows:
    """Rows on endpoints, rate limits and hedging, if there were any."""
    for endpoint in map(_table, _list(llm.get("endpoints"))):
        refused = f", {endpoint['refusals']} refused" if endpoint.get("refusals") else ""
        requests = f"{_counted(endpoint['requests'], 'request')} ({endpoint['failures']} failed{refused})"
        ejections = f", ejected {_counted(endpoint['ejections'], 'time')}" if endpoint["ejections"] else ""
        yield "endpoint", f"{endpoint['url']}: {requests}{ejections}"
    for limit in map(_table, _list(llm.get("limits"))):
        waited = f"requests held back for {limit['waited_seconds']} s, {_counted(limit['storms'], 'storm')} of refusals"
        yield "rate limit", f"{limit['model']} at {limit['backend']}: {waited}"
    hedged = _table(llm.get("hedged"))
    if hedged:
        yield "hedged", _counts(hedged)


def _unread(replies: Mapping[str, object]) -> Rows:
    """Rows on replies that could not be read, or only in part, with an example of each reason."""
    for name, title in (("unreadable", "not read"), ("partly_read", "left out")):
        for role, counts in _table(replies.get(name)).items():
            yield title, f"{role}: {_counts(_table(counts))}"
    if replies.get("asked_again"):
        yield "asked again", f"for {replies['asked_again']} of these replies"
    if not_new := _table(replies.get("not_new")):
        yield "not new", f"programs that were not run, by {_counts(not_new)}"
    for reason, example in _table(replies.get("examples")).items():
        yield "such as", f"{reason.replace('_', ' ')}: {' '.join(str(example).split())[:_EXAMPLE_CHARACTERS]}"


def _in_vain(stages: Mapping[str, object]) -> str:
    """The most frequent reasons for which items were discarded, in words."""
    reasons: Counter[str] = Counter()
    for counts in map(_table, stages.values()):
        reasons.update({name: int(_number(count)) for name, count in _table(counts.get("discard_reasons")).items()})
    return top_reasons(reasons)


def _server(server: Mapping[str, object]) -> str:
    parts = [f"{_number(server['mean_running']):.1f} running, {_number(server['mean_waiting']):.1f} waiting on average"]
    for name, what in (("mean_cache_usage", "of the KV cache in use"), ("prefix_hit_rate", "of prompt tokens cached")):
        if server.get(name) is not None:
            parts.append(f"{100 * _number(server[name]):.0f} % {what}")
    if server.get("restarts"):
        parts.append(f"died {_counted(server['restarts'], 'time')}")
    return ", ".join(parts)


def _replies(replayed: Mapping[str, object]) -> str:
    said = f"of {replayed['of']}: {replayed['matched']} recorded replies and {replayed['stand_ins']} stand-ins"
    return f"{said}, so scores mean nothing" if replayed["stand_ins"] else said


def _stages(stages: Mapping[str, object]) -> Table:
    table = Table("stage", "in", "out", "discarded", "tokens", "busy s", "queued s", "workers")
    for name, counts in stages.items():
        row = _table(counts)
        counted = ("items_in", "items_out", "discarded", "tokens", "busy_seconds", "wait_seconds", "workers")
        table.add_row(name, *(str(row[each]) for each in counted))
    return table


def _models(by_model: Mapping[str, object]) -> Table:
    table = Table("model", "requests", "failed", "tokens in", "tokens out", "dollars", "accepted")
    for name, counts in by_model.items():
        row = _table(counts)
        dollars = f"{_number(row['cost_usd']):.4f}" if row["cost_usd"] is not None else "-"
        cells = [row["requests"], row["failed"], row["prompt_tokens"], row["completion_tokens"], dollars]
        table.add_row(name, *map(str, cells), str(row["accepted"]))
    return table


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _counts(table: Mapping[str, object]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in table.items())


def _counted(number: object, what: str) -> str:
    return counted(int(_number(number)), what)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _interval(bounds: object) -> str:
    """A 95 % interval."""
    match bounds:
        case [float(low), float(high)]:
            return in_brackets((low, high))
        case _:
            return ""


def _no_better(seed: object, best: Mapping[str, object]) -> str:
    score = best.get("score")
    if not isinstance(seed, int | float) or not isinstance(score, int | float):
        return ""
    return no_better(seed, score, as_seed=bool(best.get("as_seed")))
