"""The first page on benchmarks, which fits a screen: what figures are worth, goals missed, and links to all pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench._lib.text import Content, percent, table
from bench._lib.timing_goal import is_met
from bench.confirm.claims import MARGIN
from bench.gpu import section as gpu
from bench.gpu.deviations import PREDICTED, deviations, gain, leads, made
from bench.gpu.rows import gpu_name, workloads
from bench.prediction import section as prediction
from bench.quality import section as quality
from bench.report import baseline, overview
from bench.report.age import the_defaults
from bench.report.bench import Bench, count_goals
from bench.report.benches import GROUPS
from bench.report.kinds import by_kind
from bench.throughput import section as throughput

TEXT = """\
# Benchmarks

**No capable model has confirmed any score on these pages.** The models that answered were simulated, had random
weights, or were SmolLM2-135M, too small to improve prompts or write programs. So it is open whether a
real model's edits gain as much from the stream and can be merged as well, and how many are stale. {confirm}
{missed}{prediction}{beside}

## All benchmarks

A *simulated* figure shows what the code does under the assumptions of [the simulator](reference/simulator.md), a model
of a server's timing and a small world in which the prompt decides what answers do. It doesn't predict what your model
and task will do, and settings were chosen in the same worlds. More proposals a minute are not yet a better
score. [One table](benchmarks/all.md) has all answers, commands and commits:

{links}
"""
CONFIRM = (
    "[One command]({page}) asks a model of yours whether the defaults improve a prompt, and are at most {margin:g} "
    "below gepa at equal metric calls and after half of its time. "
    "Its {repeats} repeats rarely show so small a difference."
)
REPEATS = 10
"""How many repeats `bench.confirm` makes at most by default."""
PREDICTION = """

**How far the simulator's timing holds** is shown by predictions of runs on real servers: how far off they were in the
median and at worst, and the gain foretold. The goal is {goal}. On the two CPU cores, with `{workload}`
alone, it was {missed}{first_try}{beyond}. {words}

{errors}

{cautions}{scores} **The figures below and in README have the shipped profiles:** the last row's, and an
API's, which was compared with nothing."""
SCORES = " Scores were foretold, too: {pages}{failed}."
TIMED = ("server", "profile", "the defaults' proposals over gepa's (how many)", *PREDICTED.values())
ON_VLLM = "[vLLM with a small model](benchmarks/prediction.md), two CPU cores, `{workload}`"
JUST_MEASURED = "measured right before"
SHIPPED = "shipped, of an H100, which is another GPU"
ON_GPUS = ("gpu", "gpu_hotpotqa", "gpu_aime")
"""The results on a real GPU."""
BESIDE = "\n\n## Beside synchronous gepa\n\n"
WHOLE = (
    "In brackets: until the best prompt keeps the score. "
    "[Beside gepa](benchmarks/beside_gepa.md) has more, and what is counted."
)
ON_CPU = "On [a real vLLM](benchmarks/throughput_vllm_cpu.md) on two cores {defaults} made {real}."
SINGLE = (
    "In [the predicted runs](benchmarks/prediction.md) above it is {gains} times the proposals: simulated words make "
    "edits that are accepted, and so validated; the small model's own hardly ever do."
)
LOCKSTEP = """\
In {worlds} worlds (some harsh; {rows} validation rows) and three hours, the defaults have the last score of our
lockstep loop{gepas} after {answer}, for about {tokens} of its tokens ([quality](benchmarks/quality.md))."""
LOCKSTEP_ITSELF = " (which has gepa's own in {reached} pairs)"


def first_page(found: Sequence[tuple[Bench, Content | None]]) -> str:
    """The page, with links to the pages of the benches that have a result."""
    contents = {bench.name: content for bench, content in found if content is not None}
    return TEXT.format(
        confirm=confirm("how-to/confirm.md"),
        missed=f"\n{missed}" if (missed := missed_goals(found, "benchmarks")) else "",
        prediction=_prediction(contents),
        beside=_beside(contents),
        links="\n".join(_links(found)),
    )


def _links(found: Iterable[tuple[Bench, Content | None]]) -> Iterable[str]:
    known = {bench.name for bench, content in found if content is not None}
    for about, benches in GROUPS.items():
        links = [f"[{_title(bench)}](benchmarks/{bench.name}.md)" for bench in benches if bench.name in known]
        if links:
            yield f"- **{about}:** {', '.join(links)}"


def _title(bench: Bench) -> str:
    return bench.name.replace("_", " ")


def confirm(page: str) -> str:
    """What `bench.confirm` asks a model, in a sentence that links to its page."""
    return CONFIRM.format(page=page, margin=MARGIN, repeats=REPEATS)


def missed_goals(found: Iterable[tuple[Bench, Content | None]], folder: str) -> str:
    """The goals that are missed, in a sentence that links to the pages in ``folder``; empty if all are met."""
    known = [(bench, content) for bench, content in found if content is not None]
    all_missed, goals = count_goals(known)
    told = []
    for bench, content in known:
        if missed := bench.missed(content):
            of = len(bench.goals(content))
            about = ", ".join(dict.fromkeys(each.partition(",")[0] for each in missed))
            counts = f"{len(missed)} of {of}" + ("" if len(missed) == of else f": {about}")
            told.append(f"[{_title(bench)}]({folder}/{bench.name}.md) ({counts})")
    counted = f"{all_missed} of {goals}: {by_kind(known)}"
    return f"**Goals that we set ourselves and miss ({counted}):** {'; '.join(told)}." if told else ""


def _beside(contents: Mapping[str, Content]) -> str:
    """How the defaults compare with synchronous gepa: a table of simulated servers, and a list of what is known
    besides. It leaves out what was not measured.
    """
    parts = []
    if "throughput" in contents:
        parts += [
            f"{_on_one_line(overview.lead(contents['throughput']))} {WHOLE}",
            overview.methods_beside_gepa(contents["throughput"], "how-to/presets.md#how-many-flows"),
        ]
    if told := list(_told(contents)):
        parts.append("\n".join(f"- {_on_one_line(each)}" for each in told))
    return BESIDE + "\n\n".join(parts) if parts else ""


def _told(contents: Mapping[str, Content]) -> Iterator[str]:
    """What is known besides, each on simulated or on real servers."""
    if "quality" in contents:
        yield _lockstep(contents["quality"], contents.get("throughput"))
    if on_cpu := " ".join(_on_cpu(contents)):
        yield on_cpu
    on_gpus = {f"benchmarks/{name}.md": contents[name] for name in ON_GPUS if name in contents}
    yield from gpu.beside(on_gpus, the_defaults(ON_GPUS), counted=False)


def _on_cpu(contents: Mapping[str, Content]) -> Iterator[str]:
    if "throughput_vllm_cpu" in contents:
        defaults = the_defaults(["throughput_vllm_cpu"])
        on_cpu = contents["throughput_vllm_cpu"]
        told = f"{throughput.on_each(on_cpu)}; {throughput.soon_on_real(on_cpu)}"
        yield ON_CPU.format(defaults=defaults, real=told)
    if "prediction" in contents:
        yield SINGLE.format(gains=prediction.gains(contents["prediction"]))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _lockstep(found: Content, timed: Content | None) -> str:
    reached = "" if timed is None else baseline.reached(timed)
    return LOCKSTEP.format(
        worlds=len({row["world"] for row in found["rows"]}),
        rows=quality.VALIDATION,
        answer=quality.by_world(found),
        tokens=quality.tokens_by_world(found),
        gepas=LOCKSTEP_ITSELF.format(reached=reached) if reached else "",
    )


def _prediction(contents: Mapping[str, Content]) -> str:
    """How far off the timing of simulated servers was."""
    if "prediction" not in contents:
        return ""
    found = contents["prediction"]
    on_gpu = [(name, contents[name]) for name in ON_GPUS if "predicted" in contents.get(name, {})]
    gpus = [each for _, each in on_gpu]
    workload = found["plan"]["workload"]
    on_vllm = (ON_VLLM.format(workload=workload), JUST_MEASURED)
    rows = [(*on_vllm, prediction.gain(found), *map(_off, prediction.deviations(found).values()))]
    for name, each in on_gpu:
        rows.append((_server(name, each), made(each), gain(each, "measured"), *_errors(each, "measured")))
    for name, each in on_gpu[:1]:
        rows.append((_server(name, each), SHIPPED, gain(each, "shipped"), *_errors(each, "shipped")))
    return PREDICTION.format(
        goal=_off((found["goal"]["median"], found["goal"]["worst"])),
        missed=prediction.missed(found),
        first_try=found.get("first_try", ""),
        workload=workload,
        words=prediction.WORDS,
        beyond=_beyond(found["goal"], gpus) + _shipped(found["goal"], gpus),
        errors=table(TIMED, rows),
        cautions=prediction.cautions(found),
        scores=_scores(on_gpu),
    )


def _server(name: str, content: Content) -> str:
    return f"[{gpu_name(content)}](benchmarks/{name}.md), {workloads(content)}"


def _errors(content: Content, profile: str) -> Iterable[str]:
    return map(_off, deviations(content, profile).values())


def _scores(on_gpu: Iterable[tuple[str, Content]]) -> str:
    """Which pages tell how predictions of scores did, and whether one failed; empty if none were made."""
    told = {name: said for name, content in on_gpu if (said := leads(content))}
    if not told:
        return ""
    pages = " and ".join(f"[{name.replace('_', ' ')}](benchmarks/{name}.md)" for name in told)
    failed = " (one failed)" if any("failed" in said for said in told.values()) else ""
    return SCORES.format(pages=pages, failed=failed)


def _beyond(goal: Mapping[str, float], on_gpus: Iterable[Content]) -> str:
    """On which workloads predictions of runs on a GPU were further off than the goal allows."""
    found = _further_off(goal, on_gpus, "measured")
    return f"; on a GPU it was missed with {' and '.join(found)}" if found else ""


def _further_off(goal: Mapping[str, float], on_gpus: Iterable[Content], profile: str) -> list[str]:
    """The workloads on which predictions with this profile were further off than the goal allows."""
    return [
        workloads(each) for each in on_gpus if not all(is_met(*off, goal) for off in deviations(each, profile).values())
    ]


def _shipped(goal: Mapping[str, float], on_gpus: Sequence[Content]) -> str:
    """On how many workloads the shipped profile, which is of another GPU, was further off than the goal allows."""
    found = _further_off(goal, on_gpus, "shipped")
    if not found:
        return ""
    of = f"{len(found)} of {len(on_gpus)} workloads"
    return f", and the shipped profile, of another GPU, without a goal, is further off on {of}"


def _off(deviation: tuple[float, float]) -> str:
    middle, worst = deviation
    return f"{percent(middle)}, {percent(worst)}"
