"""Misuses of the command line: each is told in one line with the remedy, leaves nothing behind, and pays for nothing.

What can be wrong inside a configuration is in test_wrong_configs.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import flowevolve

CONFIG = 'clock = "virtual"\n[budget]\nproposals = 2\n'
ROWS = "question,answer\n" + "".join(f"What is {n} + {n}?,{2 * n}\n" for n in range(6))
HELP = "see: flowevolve"

MISUSES: dict[str, tuple[str, int, str]] = {
    "a command that there is not": ("rnu", 2, "did you mean 'run'?"),
    "an option before the command": ("--json run run.toml", 2, "no such option: --json"),
    "run without a configuration": ("run", 2, "missing argument 'CONFIG'; see: flowevolve run --help"),
    "run of two configurations": ("run run.toml run.toml", 2, HELP),
    "a misspelt option": ("run run.toml --ot x", 2, "--out"),
    "an option without its value": ("run run.toml --out", 2, HELP),
    "a configuration that is not there": ("run nope.toml", 2, "nope.toml: no such config file"),
    "a folder that is no problem": ("run plain", 2, "plain"),
    "rows for a configuration": ("run rows.csv", 2, "rows.csv: not valid TOML"),
    "an override without a value": ("run run.toml --set seed", 2, "such as --set budget.minutes=10"),
    "a misspelt setting": ("run run.toml --set budjet.minutes=1", 2, "did you mean 'budget'?"),
    "a start from nowhere": ("run run.toml --from nowhere", 2, "nowhere: no such run directory"),
    "a start from a version that is not there": ("run run.toml --from done@99", 2, "99"),
    "a port that is no number": (
        "run run.toml --metrics-port x",
        2,
        "'--metrics-port': it has to be a whole number; see",
    ),
    "a port that can't be": ("run run.toml --metrics-port 99999", 2, "--metrics-port"),
    "a run directory that is a file": (
        "run run.toml --out rows.csv",
        2,
        "rows.csv is not a directory; name one for the run",
    ),
    "a run directory that is taken": ("run run.toml --out done", 2, "To go on with it, call flowevolve resume done"),
    "resume without a directory": ("resume", 2, "missing argument 'DIR'"),
    "resume of nothing": ("resume nowhere", 2, "nowhere: no such run directory"),
    "resume of a folder without a run": ("resume plain", 2, "plain holds no run"),
    "resume of what has ended": ("resume done", 2, "budget"),
    "resume with another task": ("resume done --set task.name=math", 2, "task"),
    "check of what is not there": ("check nope.toml", 2, "nope.toml: no such config file"),
    "report of nothing": ("report nowhere", 2, "nowhere: no such run directory"),
    "report of a file": ("report run.toml", 2, "run.toml: no such run directory"),
    "report of a folder without a run": ("report plain", 2, "plain holds no run"),
    "status of nothing said": ("status", 2, "name run directories, or give --all"),
    "status of nothing": ("status nowhere", 2, "nowhere: no such run directory"),
    "status of all where there are none": ("status --all nowhere", 2, "nowhere: no such folder"),
    "compare without directories": ("compare", 2, HELP),
    "compare with a folder without a run": ("compare done plain", 2, "plain holds no run"),
    "export of nothing": ("export nowhere", 2, "nowhere: no such run directory"),
    "export to a format that there is not": ("export done --format xml", 2, "'--format': 'xml' is not one of 'jsonl'"),
    "compact of nothing": ("compact nowhere", 2, "nowhere: no such run directory"),
    "repair of nothing": ("repair nowhere", 2, "nowhere: no such run directory"),
    "repair of a folder without a run": ("repair plain", 2, "plain holds no run"),
    "replay of nothing": ("replay nowhere", 2, "nowhere: no such run directory"),
    "replay with another seed": ("replay done --set seed=3", 2, "can't change seed"),
    "replay on no slots": ("replay done --slots is 0", 2, "slots"),
    "a list that there is not": ("list things", 2, "algorithms"),
    "the graph of no algorithm": ("list algorithms --graph gepaa", 2, "did you mean 'gepa'?"),
    "a list with a setting": ("list tasks --set seed=1", 2, "--graph"),
    "prompts of no algorithm": ("prompts show gepaa", 2, "did you mean 'gepa'?"),
    "prompts with a setting of nothing": ("prompts show gepa --set seed=1", 2, "name the configuration with --config"),
    "replies that are not there": ("prompts read answer --jsonl nope.jsonl", 2, "nope.jsonl can't be read"),
    "replies of no kind": ("prompts read poem --jsonl rows.csv", 2, "verdict"),
    "a new thing that there is not": ("new thing x", 2, HELP),
    "a new task without a name": ("new task", 2, "missing argument 'NAME'"),
    "a new algorithm with a name that is taken": ("new algorithm gepa", 2, "choose another name"),
    "a new task over something": ("new task mine --dir plain2", 2, "name another folder with --dir"),
    "a program that is not there": ("sandbox run nope.py", 2, "nope.py can't be read: No such file or directory\n"),
    "arguments that are no JSON": ("sandbox run seed.py --arguments {", 2, "--arguments is not JSON: "),
    "a simulated server of no profile": ("sim --profile h100", 2, "error: --profile: unknown profile"),
    "a simulated server of no world": ("sim --world mars", 2, "unknown world"),
    "more faults than requests": ("sim --fault-rate 2", 2, "'--fault-rate': it has to be less than or equal to 1"),
    "a server without a model": ("serve", 2, "missing argument 'MODEL'"),
    "no replicas": ("serve m --replicas 0", 2, "replicas"),
    "a gateway to nothing": ("gateway", 2, "missing argument 'URL...'"),
    "a gateway to no address": ("gateway nonsense", 2, "is no address"),
    "a gateway to one server twice": ("gateway http://127.0.0.1:9/v1 http://127.0.0.1:9/v1", 2, "is there twice"),
    "a gateway without its key": ("gateway http://127.0.0.1:9/v1 --api-key-env NO_KEY", 2, "NO_KEY, which is to hold"),
    "a gateway that passes nothing on": ("gateway http://127.0.0.1:9/v1 --concurrency 0", 2, "--concurrency"),
    "rows that are not there": ("init new --rows nope.csv", 2, "nope.csv"),
    "rows of no kind": ("init new --rows run.toml", 2, ".jsonl"),
    "an answer that is no column": ("init new --rows rows.csv --answer anwser", 2, "did you mean 'answer'?"),
    "an input that names no column": ("init new --rows rows.csv --input {q}", 2, "the columns are question, answer"),
    "a budget without a unit": ("init new --budget 10", 2, "such as '10 minutes'"),
    "a budget of no known unit": ("init new --budget 10parsecs", 2, "there are"),
    "a budget of nothing": (
        "init new --budget 0minutes",
        2,
        "--budget '0minutes': minutes is 0, but has to be above 0",
    ),
    "a budget in dollars of a simulated model": ("init new --budget 5dollars", 2, "--model"),
    "an algorithm that there is not": ("init new --algorithm gepaa", 2, "did you mean 'gepa'?"),
    "an algorithm for programs": ("init new --algorithm cse", 2, "give one of gepa"),
    "a server without a name of its model": ("init new --url http://localhost:8000/v1", 2, "--model"),
    "rows and a program": ("init new --rows rows.csv --program seed.py", 2, "give one of the two"),
    "a program for a prompt": ("init new --kind prompt --program seed.py", 2, "don't go together"),
    "a program without a function": ("init new --program empty.py", 2, "has no function"),
    "a program that is none": ("init new --program rows.csv", 2, "is not a Python program"),
    "what is written already": ("init plain2", 2, "is not overwritten; name another folder"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration, rows, a run that has ended, and folders that are none."""
    folder = tmp_path_factory.mktemp("misuse")
    (folder / "run.toml").write_text(CONFIG)
    (folder / "rows.csv").write_text(ROWS)
    (folder / "seed.py").write_text("def solve():\n    return 1.0\n")
    (folder / "empty.py").write_text("ANSWER = 42\n")
    (folder / "plain").mkdir()
    (folder / "plain2").mkdir()
    (folder / "plain2" / "run.toml").write_text("mine")
    assert flowevolve("run", "run.toml", "--out", "done", cwd=folder).returncode == 0
    return folder


def contents(folder: Path) -> dict[Path, int]:
    """The files of a folder with their sizes, but for those that readers of a journal have beside it, and those of a
    run that was refused before its first event: it has paid for nothing, and can be begun with ``resume``.
    """
    files = [path for path in folder.rglob("*") if not path.name.endswith(("-shm", "-wal", "lock"))]
    files = [path for path in files if "runs" not in path.parts]
    return {path: path.stat().st_size if path.is_file() else 0 for path in files}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_told_in_a_line_with_the_remedy(misuse: str, folder: Path) -> None:
    line, code, says = MISUSES[misuse]
    before = contents(folder)
    done = flowevolve(*line.split(), cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["watch", "report", "compare", "status", "resume", "export", "repair", "compact"])
def test_a_place_that_can_not_be_looked_at_is_one_line(command: str, tmp_path: Path) -> None:
    done = flowevolve(command, "x" * 300, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "xxx" in done.stderr
