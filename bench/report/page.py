"""The pages: the first one, one with a line for each bench, and one for each bench that has a result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench._lib.paths import ROOT
from bench._lib.text import Content, commit, provenance, table
from bench.gpu import section as gpu
from bench.gpu.scores import ends
from bench.report import beside_gepa
from bench.report.age import Mark, mark_of
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.first_page import ON_GPUS, first_page
from bench.report.results import RESULTS, read

PAGE = ROOT / "docs" / "benchmarks.md"
PAGES = PAGE.with_suffix("")
ALL = PAGES / "all.md"

ANSWERS = """\
# Each benchmark with its answer

Each line links to a page with settings, tables, ranges, what limits the figures, and the options where a command ends
in …. What a *simulated* figure is worth is told on [the first page](../benchmarks.md), and the words are in [the
glossary](../reference/glossary.md). `make bench` runs each bench that needs no server of yours again, in a short form
with fewer methods, seeds and minutes, in about two hours.

{lines}
{on_gpus}
{note}"""
ON_A_GPU = """
## On a real GPU

Only the speed is real in these short runs.

{rates}

{scores}
"""
NOTE = """\
*This page is made by `python -m bench.report` (`make bench-page`) from the files in `bench/results`. Its text is in
`bench/NAME/section.py`. A result counts as older than what it measures once a commit changes that, unless the commit
says how it was checked that no figure changes; `python -m bench.report.age --unchanged` lists those that do.*
"""
HEADER = ("what was asked", "answer", "model", "command", "measured at")


def pages(results: Path = RESULTS, benches: Sequence[Bench] = BENCHES) -> Mapping[Path, str]:
    """The text of each page, by its path."""
    found = [(bench, read(bench.name, results)) for bench in benches]
    own = {PAGES / f"{bench.name}.md": page(bench, content) for bench, content in found if content is not None}
    contents = {bench.name: content for bench, content in found if content is not None}
    if all(name in contents for name in beside_gepa.NEEDS):
        own[PAGES / f"{beside_gepa.NAME}.md"] = beside_gepa.page(contents)
    return {PAGE: first_page(found), ALL: answers(found), **own}


def answers(found: Iterable[tuple[Bench, Content | None]]) -> str:
    """The page with a line for each bench; the line of one without a result says that it is still to be run."""
    known = list(found)
    contents = {bench.name: content for bench, content in known if content is not None}
    on_gpus = gpu_table(contents, ".")
    scores = ends(contents[name] for name in ON_GPUS if name in contents)
    return ANSWERS.format(
        lines=table(HEADER, (tuple(_cells(*each)) for each in known)),
        on_gpus=ON_A_GPU.format(rates=on_gpus, scores=scores) if on_gpus else "",
        note=NOTE,
    )


def gpu_table(contents: Mapping[str, Content], folder: str) -> str:
    """The proposals a minute on real GPUs, with links to pages in ``folder``; empty if none were measured."""
    linked = {}
    for bench in BENCHES:
        if bench.name in ON_GPUS and bench.name in contents:
            age = "" if mark_of(bench, contents[bench.name]) is None else ", older than the code"
            linked[f" ([page]({folder}/{bench.name}.md){age})"] = contents[bench.name]
    return gpu.rates(linked) if linked else ""


def page(bench: Bench, content: Content) -> str:
    """The page of one bench: its question and answer first, then its section."""
    title, _, rest = bench.section(content).strip().partition("\n")
    asked = f"**{bench.question}** {sentence(bench.answer(content))}"
    note = f"[All benchmarks](../benchmarks.md).\n{NOTE}"
    mark = mark_of(bench, content)
    age = [] if mark is None else [_old(mark)]
    return "\n\n".join([title, asked, *age, rest.strip("\n"), provenance(content), note])


def _old(mark: Mark) -> str:
    """A sentence that says that a result is older than what it measures."""
    have = "has" if mark.commits == 1 else "have"
    changed = ", ".join(f"`{path}`" for path in mark.changed) or "what it measures"
    return f"**Older than what it measures:** {mark.counted} since {have} changed {changed}. {mark.reason}"


def _cells(bench: Bench, content: Content | None) -> Iterator[str]:
    if content is None:
        command = f"`python -m bench.{bench.command or bench.name}`"
        yield from (bench.question, "still to be run", bench.model, command, "–")
    else:
        link = f"[{bench.question}]({bench.name}.md)"
        mark = mark_of(bench, content)
        age = "" if mark is None else f"; older by {mark.counted}"
        cells = (bench.answer(content), bench.model, command_of(bench, content), f"{commit(content)}{age}")
        yield from (link, *cells)


def command_of(bench: Bench, content: Content) -> str:
    """The command that made a result, as on its page but without the files that it wrote, and cut if it is long."""
    lines = _COMMAND.findall(bench.section(content))
    command = f"`python -m bench.{bench.command or bench.name}`"
    if not lines:
        return command
    whole = _FILES.sub("", next((line for line in lines if "--json" in line), lines[0]))
    if len(whole) <= LONGEST:
        return f"`{whole}`"
    return f"{command[:-1]} …`"


_COMMAND = re.compile(r"^ {4}(python -m bench\..*)$", re.MULTILINE)
_FILES = re.compile(r" --(json|figures?|charts|predicted) \S+")
LONGEST = 80
"""How many characters of a command a line of the table has room for."""


def sentence(answer: str) -> str:
    """An answer as a sentence of its own."""
    return f"{answer[0].upper()}{answer[1:]}."
