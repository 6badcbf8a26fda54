"""The pages: one with a line for each bench, and one for each bench that has a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench._lib.paths import ROOT
from bench._lib.text import Content, commit, provenance, table
from bench.gpu.section import off
from bench.prediction.section import errors
from bench.report.age import Mark, mark_of
from bench.report.benches import BENCHES, Bench
from bench.report.results import RESULTS, read

PAGE = ROOT / "docs" / "benchmarks.md"
PAGES = PAGE.with_suffix("")

INTRO = """\
# Benchmarks

**No capable model has confirmed any score on these pages.** The models that answered were simulated, or SmolLM2-135M,
which is too small to improve a prompt or to write a program. So it is open whether a real model's edits gain as much
from the stream, whether they can be merged as well, and how many of them are stale. [One command](how-to/confirm.md)
puts the claims to a model of yours, under a cap. On a GPU, [speed alone](benchmarks/gpu.md) has been measured.

**What a simulated figure is worth.** The simulator has a model of the timing of a server and a small world in which the
prompt decides what the answers do. A simulated figure shows what the code does under these assumptions. It doesn't
predict what your model and your task will do, and settings were chosen in the same worlds.{reality}
[The simulator](reference/simulator.md) says what its parameters come from and what it can't show.{prediction}

Each line links to a page with the settings, the tables and what limits the figures. Ranges in brackets are explained
there. *Model* says which model answered, and [the glossary](reference/glossary.md) explains the words. More proposals a
minute are not yet a better score: for that, see the rows on held-out scores and on equal metric calls.
"""
PREDICTION = """

How far the timing holds was tried beside [a real vLLM](benchmarks/prediction.md) with a small model on two CPU cores,
which was measured first and predicted then{gpu}:

{errors}"""
GPU = " (beside [one on an H200](benchmarks/gpu.md): off by {off})"
REALITY = """ Two rows
make the same comparison with a simulated GPU and with a real vLLM on two CPU cores. On the real server the gain was
much smaller, because two cores are full with few requests."""
NOTE = """\
*This page is made by `python -m bench.report` (`make bench-page`) from the files in `bench/results`. Its text is in
`bench/NAME/section.py`.*
"""
HEADER = ("what was asked", "answer", "model", "command", "measured at")


def pages(results: Path = RESULTS, benches: Sequence[Bench] = BENCHES) -> Mapping[Path, str]:
    """The text of each page, by its path."""
    found = [(bench, read(bench.name, results)) for bench in benches]
    own = {PAGES / f"{bench.name}.md": page(bench, content) for bench, content in found if content is not None}
    return {PAGE: first_page(found), **own}


def first_page(found: Sequence[tuple[Bench, Content | None]]) -> str:
    """The page with a line for each bench; of those without a result it says that they are still to be run."""
    contents = {bench.name: content for bench, content in found if content is not None}
    reality = REALITY if {"throughput", "throughput_vllm_cpu"} <= contents.keys() else ""
    predicted = contents.get("prediction")
    gpu = GPU.format(off=off(contents["gpu"], "measured")) if "predicted" in contents.get("gpu", {}) else ""
    prediction = "" if predicted is None else PREDICTION.format(errors=errors(predicted), gpu=gpu)
    lines = table(HEADER, (tuple(_cells(*each)) for each in found))
    return "\n".join([INTRO.format(reality=reality, prediction=prediction), f"{lines}\n", NOTE])


def page(bench: Bench, content: Content) -> str:
    """The page of one bench: its question and answer first, then all of it."""
    title, _, rest = bench.section(content).strip().partition("\n")
    asked = f"**{bench.question}** {_sentence(bench.answer(content))}"
    note = f"[All benchmarks](../benchmarks.md).\n{NOTE}"
    mark = mark_of(bench, content)
    age = [] if mark is None else [_old(bench, mark)]
    return "\n\n".join([title, asked, *age, rest.strip("\n"), provenance(content), note])


def _old(bench: Bench, mark: Mark) -> str:
    """A sentence that says that a result is older than what it measures."""
    have = "has" if mark.commits == 1 else "have"
    folders = ", ".join(f"`{path}`" for path in bench.measures if not path.startswith(":"))
    return f"**Older than what it measures:** {mark.counted} since {have} changed {folders}. {mark.reason}"


def _cells(bench: Bench, content: Content | None) -> Iterator[str]:
    command = f"`python -m bench.{bench.command or bench.name}`"
    if content is None:
        yield from (bench.question, "still to be run", bench.model, command, "–")
    else:
        link = f"[{bench.question}](benchmarks/{bench.name}.md)"
        mark = mark_of(bench, content)
        age = "" if mark is None else f"; older by {mark.counted}"
        yield from (link, bench.answer(content), bench.model, command, f"{commit(content)}{age}")


def _sentence(answer: str) -> str:
    return f"{answer[0].upper()}{answer[1:]}."
