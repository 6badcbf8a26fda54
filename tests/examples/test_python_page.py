"""What docs/how-to/python.md shows runs as it stands there, on the simulator."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import flowevolve as fe

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
BLOCKS = [
    re.sub("^    ", "", block, flags=re.MULTILINE)
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE, re.MULTILINE)
]
CALL, METRIC, PROGRAM = BLOCKS
SIMULATED = {
    r"llm=fe\.LLM\([^()]*\)": 'llm="simulated"',
    r"budget=fe\.Budget\([^()]*\)": 'budget=fe.Budget(proposals=3), clock="virtual", progress=False',
}
LABELS = ("bug", "question", "praise")
ROWS = [{"text": f"Ticket {number}.", "label": LABELS[number % 3]} for number in range(12)]


def simulated(code: str) -> str:
    """The code with the simulator in place of a server, and a small budget."""
    for pattern, instead in SIMULATED.items():
        code, count = re.subn(pattern, instead, code)
        assert count == 1, f"{pattern} is not there once"
    return code


@pytest.fixture(autouse=True)
def _tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def test_the_call_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(simulated(CALL), names)
    result = names["result"]
    assert isinstance(result, fe.Result)
    assert result.best is not None
    assert capsys.readouterr().out == result.best.components["prompt"] + "\n"


def test_the_metric_gives_feedback() -> None:
    names: dict[str, object] = {}
    exec(
        simulated(METRIC + CALL.replace('metric=lambda row, output: row["label"] in output.lower()', "metric=metric")),
        names,
    )
    metric = names["metric"]
    assert callable(metric)
    assert metric(ROWS[0], "A bug!") == (1.0, "Right.")
    assert metric(ROWS[1], "A bug!")[1].startswith("The label is question.")


def test_the_program_calls_both_prompts() -> None:
    whole = 'train="tickets.jsonl", metric=lambda row, output: 0.5, llm=fe.LLM(), budget=fe.Budget()'
    names: dict[str, object] = {"fe": fe}
    exec(simulated(PROGRAM.replace("fe.optimize", "result = fe.optimize").replace("...", whole)), names)
    result = names["result"]
    assert isinstance(result, fe.Result)
    assert [*result.candidates[0].components] == ["extract", "answer"]
