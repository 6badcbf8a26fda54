"""The pages: one with a line for each bench, and one for each bench that has a result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench._lib.paths import ROOT
from bench._lib.text import Content, commit, percent, provenance, table
from bench._lib.timing_goal import is_met
from bench.confirm.claims import MARGIN
from bench.gpu import section as gpu
from bench.gpu.deviations import PREDICTED, deviations, gain, leads, made
from bench.gpu.rows import gpu_name, workloads
from bench.gpu.scores import ends
from bench.prediction import section as prediction
from bench.report.age import Mark, mark_of
from bench.report.benches import BENCHES, Bench
from bench.report.results import RESULTS, read
from bench.throughput import section as throughput
from bench.throughput.comparisons import COMPARISONS, range_of
from bench.throughput.goals import places

PAGE = ROOT / "docs" / "benchmarks.md"
PAGES = PAGE.with_suffix("")

INTRO = """\
# Benchmarks

**No capable model has confirmed any score on these pages.** The models that answered were simulated, had random
weights, or were SmolLM2-135M, which is too small to improve a prompt or to write a program. So it is open whether a
real model's edits gain as much from the stream and can be merged as well, and how many are stale. {confirm}
{missed}{prediction}{real}

## All benchmarks

A *simulated* figure shows what the code does under the assumptions of [the simulator](reference/simulator.md): a model
of a server's timing, and a small world in which the prompt decides what the answers do. It doesn't predict what your
model and your task will do, and settings were chosen in the same worlds. Each line links to a page with settings,
tables, ranges, what limits the figures, and the options where a command ends in …. The words are in [the
glossary](reference/glossary.md). More proposals a minute are not yet a better score: for that, see the rows on scores.
`make bench` runs each bench that needs no server of yours again, in a short form with fewer methods, seeds and minutes,
in about two hours.
"""
CONFIRM = (
    "[One command]({page}) asks a model of yours, under a cap in dollars, whether the defaults improve a prompt, and "
    "are not more than {margin:g} below gepa at equal metric calls and after half of its time. Its {repeats} repeats "
    "can show the first, but rarely a difference as small as that."
)
REPEATS = 10
"""How many `bench.confirm` makes at most, if not told otherwise."""
REAL = "\n\n**On real servers**, of which only the speed is real, from short runs:"
ON_CPU = "Beside synchronous gepa, [on two CPU cores](benchmarks/throughput_vllm_cpu.md), the defaults made {real}."
ON_SIMULATED = (
    "\n\n**On [simulated servers](benchmarks/throughput.md)** the defaults made {gains} times synchronous gepa's "
    "proposals{clocks}."
)
SINGLE = "In [other runs](benchmarks/prediction.md) on the two cores it was {gains} requests in flight at most."
ON_GPUS = ("gpu", "gpu_hotpotqa", "gpu_aime")
"""The results on a real GPU."""
PREDICTION = """

**How far the simulator's timing holds** is shown by predictions of runs on real servers: how far they were off in the
median, and at worst, and the gain that they foretold. The goal is {goal}. It is judged on the two CPU cores, where it
was {missed}{beyond}. {words}

{errors}

{cautions}{leads} The profile of an API was compared with nothing."""
TIMED = ("server", "profile", "the defaults' proposals over synchronous gepa's (how many of each)", *PREDICTED.values())
ON_VLLM = ("[vLLM with a small model](benchmarks/prediction.md), two CPU cores", "measured right before")
SHIPPED = "shipped, of an H100, which is another GPU"
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
    return {PAGE: first_page(found), **own}


def first_page(found: Sequence[tuple[Bench, Content | None]]) -> str:
    """The page with a line for each bench; of those without a result it says that they are still to be run."""
    contents = {bench.name: content for bench, content in found if content is not None}
    intro = INTRO.format(
        confirm=confirm("how-to/confirm.md"),
        real=_real(contents),
        prediction=_prediction(contents),
        missed=f"\n{missed}" if (missed := missed_goals(found, "benchmarks")) else "",
    )
    lines = table(HEADER, (tuple(_cells(*each)) for each in found))
    return "\n".join([intro, f"{lines}\n", NOTE])


def missed_goals(found: Iterable[tuple[Bench, Content | None]], folder: str) -> str:
    """The goals that are missed, in a sentence that links to the pages in ``folder``; nothing where all are met."""
    told = []
    for bench, content in found:
        if content is not None and (missed := bench.missed(content)):
            about = ", ".join(dict.fromkeys(each.partition(",")[0] for each in missed))
            counts = f"{len(missed)} of {len(bench.goals(content))}"
            told.append(f"[{bench.name.replace('_', ' ')}]({folder}/{bench.name}.md) ({counts}: {about})")
    return f"**Goals that we set ourselves and miss:** {'; '.join(told)}." if told else ""


def confirm(page: str) -> str:
    """What the command asks that puts claims to a model, in a sentence that links to its page."""
    return CONFIRM.format(page=page, margin=MARGIN, repeats=REPEATS)


def _real(contents: Mapping[str, Content]) -> str:
    """What the defaults came to on real servers, as a list, and on simulated ones; nothing of what was not measured."""
    told = []
    if "throughput_vllm_cpu" in contents:
        told.append(ON_CPU.format(real=throughput.on_each(contents["throughput_vllm_cpu"])))
    if "prediction" in contents:
        told.append(SINGLE.format(gains=prediction.gains(contents["prediction"])))
    on_gpus = gpu_table(contents, "benchmarks")
    parts = ["\n".join(f"- {each}" for each in told), on_gpus, scores_on_gpus(contents)]
    said = "\n\n".join((REAL, *filter(None, parts))) if told or on_gpus else ""
    if "throughput" in contents:
        found = contents["throughput"]
        said += ON_SIMULATED.format(gains=_gain(found), clocks=throughput.on_other_clocks(found))
    return said


def gpu_table(contents: Mapping[str, Content], folder: str) -> str:
    """The proposals a minute on real GPUs, with links to pages in ``folder``; nothing where none was measured."""
    linked = {}
    for bench in BENCHES:
        if bench.name in ON_GPUS and bench.name in contents:
            age = "" if mark_of(bench, contents[bench.name]) is None else ", older than the code"
            linked[f" ([page]({folder}/{bench.name}.md){age})"] = contents[bench.name]
    return gpu.rates(linked) if linked else ""


def scores_on_gpus(contents: Mapping[str, Content]) -> str:
    """What the runs on real GPUs say of scores."""
    return ends(contents[name] for name in ON_GPUS if name in contents)


def _gain(throughput: Content) -> str:
    """The defaults' proposals over synchronous gepa's on each server, with the range over workloads."""
    found = (COMPARISONS["stream_vs_gepa_sync"].found(rows) for rows in places(throughput).values())
    return " and ".join(f"{each.mean:.1f} (by workload {range_of(each)})" for each in found if each is not None)


def _prediction(contents: Mapping[str, Content]) -> str:
    """How far off the timing of simulated servers was."""
    if "prediction" not in contents:
        return ""
    found = contents["prediction"]
    on_gpu = [(name, contents[name]) for name in ON_GPUS if "predicted" in contents.get(name, {})]
    gpus = [each for _, each in on_gpu]
    rows = [(*ON_VLLM, prediction.gain(found), *map(_off, prediction.deviations(found).values()))]
    for name, each in on_gpu:
        server = f"[{gpu_name(each)}](benchmarks/{name}.md), {workloads(each)}"
        rows.append((server, made(each), gain(each, "measured"), *map(_off, deviations(each, "measured").values())))
    for name, each in on_gpu[:1]:
        server = f"[{gpu_name(each)}](benchmarks/{name}.md), {workloads(each)}"
        rows.append((server, SHIPPED, gain(each, "shipped"), *map(_off, deviations(each, "shipped").values())))
    return PREDICTION.format(
        goal=_off((found["goal"]["median"], found["goal"]["worst"])),
        missed=prediction.missed(found),
        words=prediction.WORDS,
        beyond=_beyond(found["goal"], gpus) + _shipped(found["goal"], gpus),
        errors=table(TIMED, rows),
        cautions=prediction.cautions(found),
        leads="".join(leads(each) for _, each in on_gpu),
    )


def _beyond(goal: Mapping[str, float], on_gpus: Iterable[Content]) -> str:
    """On which workloads predictions of runs on a GPU were further off than the goal is."""
    found = _further_off(goal, on_gpus, "measured")
    return f"; on a GPU {' and '.join(found)} would miss it" if found else ""


def _further_off(goal: Mapping[str, float], on_gpus: Iterable[Content], profile: str) -> list[str]:
    """The workloads on which predictions by this profile were further off than the goal is."""
    return [
        workloads(each) for each in on_gpus if not all(is_met(*off, goal) for off in deviations(each, profile).values())
    ]


def _shipped(goal: Mapping[str, float], on_gpus: Sequence[Content]) -> str:
    """On how many workloads the shipped profile is further off than the goal, beside runs on another GPU."""
    found = _further_off(goal, on_gpus, "shipped")
    return f", and the shipped profile, of another GPU, on {len(found)} of {len(on_gpus)} workloads" if found else ""


def _off(deviation: tuple[float, float]) -> str:
    middle, worst = deviation
    return f"{percent(middle)}, {percent(worst)}"


def page(bench: Bench, content: Content) -> str:
    """The page of one bench: its question and answer first, then all of it."""
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
        link = f"[{bench.question}](benchmarks/{bench.name}.md)"
        mark = mark_of(bench, content)
        age = "" if mark is None else f"; older by {mark.counted}"
        cells = (bench.answer(content), bench.model, command_of(bench, content), f"{commit(content)}{age}")
        yield from (link, *cells)


def command_of(bench: Bench, content: Content) -> str:
    """The command that made a result, as its page has it, but for the files that it wrote."""
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
"""Characters of a command that a line of the table has room for."""


def sentence(answer: str) -> str:
    """An answer as a sentence of its own."""
    return f"{answer[0].upper()}{answer[1:]}."
