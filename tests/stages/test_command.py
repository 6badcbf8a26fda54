"""A command of the user's writes programs, in place of LLM calls."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve.algorithms.levi import LEVI
from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import Usage
from flowevolve.core.named import Named
from flowevolve.engine.report import RunReport
from flowevolve.prompts.commands import PROGRAM_FOLDER, read_usage
from flowevolve.prompts.novelty import TOO_LIKE_HEADING
from flowevolve.stages.command import ProposerSettings
from flowevolve.tasks.house_style import house_style_task
from tests.stages.test_forms import ALGORITHMS, Settings, roles
from tests.support.interruption import Fact, events_of, evolve
from tests.support.killed import ends
from tests.support.number_programs import Numbers, NumberTask

AGENT = """\
import json, os, re, sys, time, subprocess
from pathlib import Path
prompt = sys.stdin.read()
assert prompt == Path("PROMPT.md").read_text()
program = Path("program/program.py")
def write(value):
    program.write_text(re.sub("value = .*", f"value = {value}", program.read_text()))
def more():
    write(round(float(re.search("value = ([0-9.]+)", program.read_text())[1]) + 0.01, 4))
def log(line):
    with open(sys.argv[1], "a") as file:
        file.write(f"{line}\\n")
"""
MORE = "more(); log('ran'); print('Name: more'); print('Idea: more is better')\n"


def settings(tmp_path: Path, code: str, **more: object) -> Settings:
    script = tmp_path / "agent.py"
    script.write_text(AGENT + code)
    command = [sys.executable, str(script), str(tmp_path / "log")]
    return {"proposer": {"command": command, **more}}


def log(tmp_path: Path) -> list[str]:
    path = tmp_path / "log"
    return path.read_text().splitlines() if path.exists() else []


def search(
    chosen: Settings,
    before: Sequence[Fact] = (),
    *,
    name: str = "one_plus_lambda",
    seed: str = "value = 1.0\n",
    proposals: int = 4,
) -> tuple[RunReport, list[Fact]]:
    algorithm = ALGORITHMS[name](NumberTask(Numbers(seed=seed)), chosen)
    return evolve(algorithm, before, roles=roles, budget=fe.Budget(proposals=proposals), max_in_flight=2)


def wrote(facts: Sequence[Fact]) -> list[Mapping[str, object]]:
    return [event.data for event in events_of(facts, "command.wrote")]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_writes_the_programs_of_every_algorithm(tmp_path: Path, name: str) -> None:
    report, facts = search(settings(tmp_path, MORE), name=name, proposals=6)
    assert report.error is None
    assert report.spent.proposals == len(log(tmp_path)) == len(wrote(facts)) == 6
    made = [each for each in report.pool.snapshot().candidates() if each.artifact["program.py"] != "value = 1.0\n"]
    assert any("value = 1.01" in program for each in made for program in each.artifact.values())
    assert {Named.of(each).idea for each in made if "program.py" in each.artifact and each.parents} <= {
        "more is better",
        "",
    }
    called = {call.role for call in facts if isinstance(call, CallRecord)}
    assert called.isdisjoint({"code", "large", "small"})


def test_it_finds_files_and_a_prompt_that_asks_for_them(tmp_path: Path) -> None:
    code = """\
names = sorted(str(path) for path in Path(".").rglob("*") if path.is_file())
log(json.dumps({name: Path(name).read_text() for name in names})); more()
"""
    mixed = {"form": "mixed", "forms": {"edits": 0.01, "cross": 1, "fix": 0}}
    search({**settings(tmp_path, code), **mixed}, proposals=6)
    found = [json.loads(line) for line in log(tmp_path)]
    assert set(found[0]) == {"PROMPT.md", "TASK.md", "FEEDBACK.md", f"{PROGRAM_FOLDER}/program.py"}
    assert found[0]["TASK.md"] == "Make the number large, but not too large."
    assert found[0]["FEEDBACK.md"].startswith("Score: 1.0\n")
    assert "Edit the files in the folder program/ in place" in found[0]["PROMPT.md"]
    assert "```" not in found[0]["PROMPT.md"].rpartition("## What to write")[2]
    crossed = [each for each in found if "others/1/program.py" in each]
    assert crossed
    assert all("value = 1." in each["others/1/program.py"] for each in crossed)


def test_only_the_parts_that_may_change_do(tmp_path: Path) -> None:
    seed = "fixed = 1\n# EVOLVE-BLOCK-START\nvalue = 1.0\n# EVOLVE-BLOCK-END\n"
    code = "program.write_text(program.read_text().replace('fixed = 1', 'fixed = 2')); Path('more.py').write_text('')"
    report, facts = search(settings(tmp_path, code), seed=seed)
    refused = events_of(facts, "reply.unparsable")
    assert {event.data["reason"] for event in refused} == {"frozen"}
    assert len(refused) == report.spent.proposals == 4
    report, _ = search(settings(tmp_path, "more(); Path('program/more.py').write_text('')"), seed=seed)
    best = max(report.pool.snapshot().candidates(), key=lambda each: each.mean_score)
    assert "fixed = 1" in best.artifact["program.py"]
    assert best.mean_score > 1.0
    assert set(best.artifact) == {"program.py"}


@pytest.mark.parametrize(
    ("code", "reason"),
    [("program.write_text('def (')", "does_not_compile"), ("program.write_bytes(b'x' * (1 << 21))", None), ("", None)],
)
def test_a_program_that_is_none_is_no_proposal(tmp_path: Path, code: str, reason: str | None) -> None:
    report, facts = search(settings(tmp_path, code))
    assert report.spent.proposals == 4
    assert len(events_of(facts, "candidate.proposed")) == 1
    assert {event.data["reason"] for event in events_of(facts, "reply.unparsable")} == ({reason} if reason else set())


def test_what_it_says_that_it_took_is_charged_once(tmp_path: Path) -> None:
    usage = {"type": "result", "total_cost_usd": 0.5, "usage": {"input_tokens": 100, "output_tokens": 20}}
    code = f"more(); log('ran'); print('...'); print('''{json.dumps(usage)}''')"
    chosen = settings(tmp_path, code)
    report, whole = search(chosen)
    assert (report.spent.tokens, report.spent.dollars) == (480, 2.0)
    ran = len(log(tmp_path))
    end = next(place for place, fact in enumerate(whole) if isinstance(fact, fe.Event) and fact.kind == "command.wrote")
    report, facts = search(chosen, whole[: end + 1])
    assert len(log(tmp_path)) - ran == 3  # the one that had ended is not run again
    assert len(wrote(facts)) == 4
    assert (report.spent.tokens, report.spent.dollars) == (480, 2.0)


@pytest.mark.parametrize(
    ("output", "usage", "dollars"),
    [
        ("", Usage(), 0.0),
        ('{"prompt_tokens": 3, "completion_tokens": 4, "dollars": 0.25}\ndone', Usage(3, 4), 0.25),
        ('{"input_tokens": 1}\n{"input_tokens": 2}\n{"broken', Usage(2, 0), 0.0),
        ('{"input_tokens": -5, "total_cost_usd": "much", "output_tokens": 1e400}', Usage(), 0.0),
    ],
)
def test_the_last_object_counts(output: str, usage: Usage, dollars: float) -> None:
    assert read_usage(output) == (usage, dollars)


LEAVES = "log(subprocess.Popen(['sleep', '3600']).pid); more()\n"
"""It starts something that would outlive it."""


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    code = f"{LEAVES}time.sleep(3600)"
    report, facts = search(settings(tmp_path, code, seconds=1.5), proposals=1)
    assert [each["status"] for each in wrote(facts)] == [-signal.SIGKILL]
    assert all(ends(int(pid)) for pid in log(tmp_path))
    assert len(log(tmp_path)) == 1
    assert max(each.mean_score for each in report.pool.snapshot().candidates()) == 1.01  # what it had written counts


def test_what_it_leaves_running_ends_with_it(tmp_path: Path) -> None:
    search(settings(tmp_path, LEAVES), proposals=1)
    assert len(log(tmp_path)) == 1
    assert all(ends(int(pid)) for pid in log(tmp_path))


def test_it_ends_with_a_run_that_is_cancelled(tmp_path: Path) -> None:
    async def cancel(engine: fe.Engine) -> None:
        loop = asyncio.get_running_loop()

        def as_soon_as_it_runs() -> None:
            while not log(tmp_path):
                time.sleep(0.01)
            loop.call_soon_threadsafe(engine.cancel)

        threading.Thread(target=as_soon_as_it_runs, daemon=True).start()  # the loop's clock goes on beside it

    code = "log(os.getpid()); time.sleep(3600)"
    algorithm = ALGORITHMS["one_plus_lambda"](NumberTask(), settings(tmp_path, code, concurrency=1))
    _, facts = evolve(algorithm, roles=roles, budget=fe.Budget(proposals=4), max_in_flight=2, beside=cancel)
    assert wrote(facts) == []
    assert len(log(tmp_path)) == 1  # the other one waited
    assert all(ends(int(pid)) for pid in log(tmp_path))


def test_only_the_end_of_what_it_prints_is_kept(tmp_path: Path) -> None:
    code = "print('x' * 10_000_000); print('Name: the end'); more()"
    report, facts = search(settings(tmp_path, code, output_kb=1), proposals=1)
    assert [len(str(each["output"])) for each in wrote(facts)] == [1000]
    assert "the end" in {Named.of(each).name for each in report.pool.snapshot().candidates()}


def test_one_that_is_too_much_like_others_is_asked_for_again(tmp_path: Path) -> None:
    novelty = {"novelty": {"by": "text", "tries": 2}}
    chosen = {**settings(tmp_path, f"write(1.5); log({TOO_LIKE_HEADING!r} in prompt)"), **novelty}
    report, _ = search(chosen, name="best_of_n", proposals=5)
    assert "True" in log(tmp_path)
    assert report.spent.proposals == len(log(tmp_path)) == 5


def test_a_program_that_is_not_there_is_told_before_the_run() -> None:
    with pytest.raises(fe.InputError, match=r"algorithm\.proposer\.command: there is no program 'no-such-agent'"):
        ProposerSettings(command=("no-such-agent",)).make("")
    assert ProposerSettings().make("") is None


def test_it_writes_no_prompts() -> None:
    config = LEVIConfig.model_validate({"proposer": {"command": [sys.executable]}})
    with pytest.raises(fe.InputError, match="a command can only write programs"):
        LEVI(house_style_task(), config)
