"""`flowevolve init`: what it writes runs as it is, and it asks what flags don't say."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.command import Done, flowevolve

ROWS = "question,answer\n" + "".join(f"What is {n} + {n}?,{2 * n}\n" for n in range(6))
FEW = ("--set", "budget.proposals=3")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows, whose modules are imported anew."""
    (tmp_path / "rows.csv").write_text(ROWS)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    for module in ("my_task", "my_scoring"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.syspath_prepend(folder)
    done = flowevolve("run", "run.toml", "--json", *FEW, cwd=folder)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_the_sample_gets_better_on_the_simulated_server(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = flowevolve("init", "new", cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "next: cd new && flowevolve run run.toml"
    assert "the rows are a sample" in done.stdout
    monkeypatch.syspath_prepend(here / "new")
    done = flowevolve("run", "run.toml", "--json", "--set", "budget.proposals=15", cwd=here / "new")
    result = json.loads(done.stdout)
    assert result["best"]["score"] > result["seed_score"] > 0


@pytest.mark.parametrize("said", ["5 dollars", "$5"])
def test_a_budget_in_dollars_leaves_the_prices_to_be_filled_in(here: Path, said: str) -> None:
    done = flowevolve("init", "new", "--model", "m/1", "--budget", said, cwd=here)
    assert done.returncode == 0, done.stderr
    assert "to fill in: in run.toml what m/1 costs, as the budget is in dollars" in done.stdout
    config = here / "new" / "run.toml"
    assert tomllib.loads(config.read_text())["budget"] == {"dollars": 5}
    done = flowevolve("check", "run.toml", cwd=here / "new")
    assert done.returncode == 2
    assert "budget.dollars needs the price of 'm/1'" in done.stderr
    text = config.read_text().replace("# [llm.prices", "[llm.prices")
    config.write_text(text.replace("# input = ...", "input = 1").replace("# output = ...", "output = 2"))
    assert tomllib.loads(config.read_text())["llm"]["prices"] == {"m/1": {"input": 1, "output": 2}}


def test_own_rows_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = flowevolve("init", "new", "--rows", "rows.csv", "--prompt", 'Say "so".', "--budget", "1 hour", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "knows nothing of your rows" in done.stdout
    assert (here / "new" / "rows.csv").read_text() == ROWS
    assert 'INPUT = "{question}"' in (here / "new" / "my_task.py").read_text()
    assert tomllib.loads((here / "new" / "run.toml").read_text())["budget"] == {"hours": 1}
    result = run(here / "new", monkeypatch)
    assert result["seed_score"] == 0
    assert result["best"] is not None


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_rows_of_other_kinds_are_taken(ending: str, here: Path) -> None:
    rows = [{"the title": f"t{n}", "text": "x", "label": "a"} for n in range(4)]
    if ending == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), here / f"r{ending}")
    else:
        (here / f"r{ending}").write_text("\n".join(map(json.dumps, rows)))
    done = flowevolve("init", ".", "--rows", f"r{ending}", cwd=here)
    assert done.returncode == 0, done.stderr
    written = (here / "my_task.py").read_text()
    assert r'INPUT = "the title: {the title}\ntext: {text}"' in written
    assert 'row["label"]' in written


def test_the_sample_program_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert flowevolve("init", ".", "--kind", "program", cwd=here).returncode == 0
    result = run(here, monkeypatch)
    assert result["algorithm"] == "one_plus_lambda"
    assert isinstance(result["seed_score"], float)
    assert 0 < result["seed_score"] < 1


def test_an_own_program_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "seed.py").write_text("def number():\n    return 0.25\n")
    assert flowevolve("init", "new", "--program", "seed.py", "--algorithm", "best_of_n", cwd=here).returncode == 0
    result = run(here / "new", monkeypatch)
    assert (result["algorithm"], result["seed_score"]) == ("best_of_n", 0.25)


def test_an_own_program_with_arguments_needs_cases(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "seed.py").write_text(
        "def half(x):\n    return x / 2\n\ndef number(x, scale=1):\n    return half(x) * scale\n"
    )
    done = flowevolve("init", "new", "--program", "seed.py", cwd=here)
    assert "in run.toml the cases that number is called with" in done.stdout
    monkeypatch.syspath_prepend(here / "new")
    checked = flowevolve("check", "run.toml", cwd=here / "new")
    assert checked.returncode == 2
    assert "task.cases: the function number needs x" in checked.stderr
    config = here / "new" / "run.toml"
    config.write_text(config.read_text().replace("# cases = [{ x = ... }, { x = ... }]", "cases = [{ x = 1.0 }]"))
    assert "score: 1 case" in flowevolve("check", "run.toml", cwd=here / "new").stdout
    assert run(here / "new", monkeypatch)["seed_score"] == 0.5


def test_a_program_that_does_not_compile_is_told_by_line(here: Path) -> None:
    (here / "seed.py").write_text("def f():\n    return (\n")
    done = flowevolve("init", "new", "--program", "seed.py", cwd=here)
    assert (done.returncode, done.stderr) == (
        2,
        "error: seed.py is not a Python program: line 2: '(' was never closed\n",
    )


def test_a_model_and_its_server_are_named(here: Path) -> None:
    said = ("--model", "Qwen/Qwen3-8B", "--url", "http://127.0.0.1:9/v1")
    assert flowevolve("init", "new", *said, cwd=here).returncode == 0
    table = tomllib.loads((here / "new" / "run.toml").read_text())
    assert table["llm"] == {"backend": "openai", "model": "Qwen/Qwen3-8B", "base_url": "http://127.0.0.1:9/v1"}
    assert "clock" not in table
    assert "sim" not in table


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


def asked(answers: str, here: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Done:
    monkeypatch.setattr(sys, "stdin", Terminal(answers))
    return flowevolve("init", "new", *arguments, cwd=here)


def test_on_a_terminal_it_asks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = "prompt\nnope.csv\nrows.csv\nAdd them up.\nm\nhttp://127.0.0.1:9/v1\nforever\n20 proposals\n"
    done = asked(answers, here, monkeypatch)
    assert done.returncode == 0, done.stderr
    assert "nope.csv" in done.stderr
    assert "'forever'" in done.stderr
    table = tomllib.loads((here / "new" / "run.toml").read_text())
    assert (table["llm"]["model"], table["budget"]) == ("m", {"proposals": 20})
    assert (here / "new" / "rows.csv").exists()
    assert 'PROMPT = "Add them up."' in (here / "new" / "my_task.py").read_text()
    assert "the model is shown '{question}' of a row, and 'answer' is the right answer" in done.stdout


def test_it_asks_nothing_that_flags_say(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = asked("\n", here, monkeypatch, "--rows", "rows.csv", "--prompt", "Add.", "--budget", "5 minutes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("?") == 0
    assert "Model" in done.stdout


def test_an_end_of_the_answers_ends_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = asked("prompt\n", here, monkeypatch)
    assert done.returncode == 130
    assert not (here / "new").exists()


@pytest.mark.parametrize("flags", [(), ("--rows", "rows.csv"), ("--kind", "program")])
def test_what_is_written_is_formatted_and_clean(flags: tuple[str, ...], here: Path) -> None:
    assert flowevolve("init", "new", *flags, cwd=here).returncode == 0
    (here / "new" / "ruff.toml").write_text('line-length = 120\nlint.select = ["E", "F", "UP", "B", "RUF"]\n')
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", str(here / "new")]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
