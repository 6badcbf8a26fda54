"""The rows that both methods are given, and those that are held out from them.

They are shuffled with one seed and split into train, validation and held-out rows, the same for all repeats. A file has
one JSON object per line, or is a JSON list of them; it may be gzipped:

- ``ifbench``: ``prompt``, ``instruction_id_list`` and ``kwargs``, as in IFBench's own file;
- ``hotpotqa``: ``question``, ``answer`` (or a list ``answers``), ``context`` as [title, sentences] pairs, and
  ``supporting_facts``, as in HotpotQA's own files with the distractor setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.core.task import Dataset, Task
from flowevolve.tasks.house_style import DATA_FILE, SEED_PROMPT
from flowevolve.tasks.instructions import InstructionFollowing
from flowevolve.tasks.loaders import load_rows, split_rows
from flowevolve.tasks.multihop import MultiHopQA

SPLIT_SEED = 0
SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows there are of each kind."""

    train: int
    validation: int
    held_out: int


@dataclass(frozen=True, slots=True)
class RowSet:
    """A set of rows: the task that it is for, and where it comes from."""

    about: str
    make: Callable[[Dataset], Task]
    source: str


SHIPPED = "house_style"
ROW_SETS: Mapping[str, RowSet] = {
    "ifbench": RowSet(
        "IFBench: instructions whose keeping is checked",
        partial(InstructionFollowing, name="ifbench"),
        "data/IFBench_test.jsonl of https://github.com/allenai/IFBench (ODC-BY 1.0)",
    ),
    "hotpotqa": RowSet(
        "HotpotQA: questions that need two paragraphs, in two calls",
        partial(MultiHopQA, name="hotpotqa"),
        "hotpot_dev_distractor_v1.json of https://hotpotqa.github.io (CC BY-SA 4.0)",
    ),
    SHIPPED: RowSet(
        "requests with a hidden house style, which ship with the package",
        partial(InstructionFollowing, name=SHIPPED, seed_prompt=SEED_PROMPT),
        "ships with the package",
    ),
}


def whole_task(name: str, folder: Path | None, sizes: Sizes) -> Task:
    """The task including its held-out rows, which only the scoring after the runs uses.

    Raises:
        InputError: if the file is missing or can't be used, or has too few rows.
    """
    file = DATA_FILE if name == SHIPPED else _file(name, folder)
    cut = {"train": sizes.train, "val": sizes.validation, "test": sizes.held_out}
    try:
        return ROW_SETS[name].make(split_rows(load_rows(file), cut, SPLIT_SEED, source=str(file)))
    except InputError as error:
        said = str(error) if str(file) in str(error) else f"{file}: {error}"
        raise InputError(f"{said} (--train, --validation and --held-out set how many rows are used)") from None


def task_to_evolve(name: str, folder: Path | None, sizes: Sizes) -> Task:
    """The task as a method is given it: without the held-out rows."""
    rows = whole_task(name, folder, sizes).data
    return ROW_SETS[name].make(replace(rows, test=()))


def _file(name: str, folder: Path | None) -> Path:
    names = [f"{name}{suffix}" for suffix in SUFFIXES]
    source = f"its rows are {ROW_SETS[name].source}: save them there as {name}.json or {name}.jsonl"
    if folder is None:
        raise InputError(f"--rows {name}: needs a folder with {name}.jsonl as --data; {source}")
    found = next((folder / each for each in names if (folder / each).exists()), None)
    if found is None:
        raise InputError(f"{folder}: has no {name}.jsonl (nor {', '.join(names[1:])}); {source}")
    return found


def default_rows(folder: Path | None) -> Sequence[str]:
    """The sets that are used if none are named."""
    return [SHIPPED] if folder is None else [name for name in ROW_SETS if name != SHIPPED]
