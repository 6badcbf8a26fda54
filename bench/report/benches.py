"""Which benches have a page, in which order, and what each of them asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench._lib.measured import CONFIRM, GEPA, GPU, METHODS, PROGRAMS, RUNS
from bench._lib.text import Content, Verdicts
from bench.ablations import section as ablations
from bench.ace import section as ace
from bench.agent_ablations import section as agent_ablations
from bench.algorithms import section as algorithms
from bench.confirm import section as confirm
from bench.context_tokens import section as context_tokens
from bench.durability import section as durability
from bench.equal_calls import section as equal_calls
from bench.evaluations import section as evaluations
from bench.families import section as families
from bench.gepa_adapter import section as gepa_adapter
from bench.gepa_modes import section as gepa_modes
from bench.gpu import section as gpu
from bench.gpu.deviations import goals as gpu_goals
from bench.levi_proxy import section as levi_proxy
from bench.meta_harness import section as meta_harness
from bench.nodes import section as nodes
from bench.overhead import section as overhead
from bench.page import section as page
from bench.plan import section as plan
from bench.prediction import section as prediction
from bench.program_peers import section as program_peers
from bench.programs import section as programs
from bench.quality import beside, section as quality
from bench.report.baseline import quality_section
from bench.scale import section as scale
from bench.sharing import section as sharing
from bench.task_sequence import section as task_sequence
from bench.throughput import goals as throughput_goals, section as throughput

SIMULATED, SMALL, NONE = "simulated", "SmolLM2-135M", "none"


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench: its result is ``NAME.json``. ``section`` makes Markdown of that, from a ``#`` heading on; ``answer`` is
    one figure with its spread, said so that it follows the question. ``model`` is which one answered, and ``command``
    what to call after ``python -m bench.``, where that is not the name. ``measures`` are the folders and files that
    decide the figures, as git's pathspecs: once they change, the result is old. ``quick`` are the arguments of a short
    form, if there is one; None where a server of the reader's is needed. ``full`` are those that the published result
    was made with. ``environment`` is the folder of the one that
    it runs in, where it needs more than ours. ``goals`` says which goals it has and whether they are met.
    """

    name: str
    question: str
    answer: Callable[[Content], str]
    section: Callable[[Content], str]
    model: str = SIMULATED
    command: str | None = None
    measures: Sequence[str] = ()
    quick: str | None = "--quick"
    full: str = ""
    environment: str | None = None
    goals: Callable[[Content], Verdicts] = lambda content: {}

    def missed(self, content: Content) -> Sequence[str]:
        """What the goals are about that a result misses."""
        return [about for about, met in self.goals(content).items() if not met]


BENCHES: Sequence[Bench] = (
    Bench(
        "throughput",
        "How soon has the stream synchronous gepa's last score, and with how many proposals?",
        throughput.answer,
        throughput.section,
        measures=METHODS,
        goals=throughput_goals.met,
        full="--methods gepa_sync gepa_pxn_2x2 gepa_pxn_4x4 gepa_pxn_8x8 gepa_pxn_1x8 gepa_pxn_8x1 gepa_pxn_2x8 "
        "gepa_pxn_8x2 dspy_gepa_4x4 agentdescent turbogepa stream plain flashevolve lockstep stream_real lockstep_real "
        "--repeats 3 --virtual-repeats 5 --base-repeats 5",
    ),
    Bench(
        "throughput_vllm_cpu",
        "How is that on a real vLLM with two CPU cores?",
        throughput.answer,
        throughput.section,
        SMALL,
        "throughput --server vllm-cpu",
        measures=METHODS,
        goals=throughput_goals.met,
        full="--concurrency 32 --methods gepa_sync stream plain --workloads ifbench aime --minutes 2.5 --repeats 1",
    ),
    Bench(
        "prediction",
        "By how much is the simulator off, beside a real server?",
        prediction.answer,
        prediction.section,
        SMALL,
        measures=(
            "flowevolve/sim/calibration",
            "flowevolve/sim/service_model.py",
            *GEPA,
            "bench/_lib/methods",
            "bench/prediction/measurements.py",
            "bench/prediction/replies.py",
            "bench/prediction/worded.py",
        ),
        goals=prediction.goals,
    ),
    Bench(
        "gpu",
        "How many proposals a minute does it make on a real GPU?",
        gpu.answer,
        gpu.section,
        "random weights, simulated words",
        "gpu --workloads hover --minutes 2.5 --concurrency 64",
        measures=GPU,
        quick=None,
        goals=gpu_goals,
    ),
    Bench(
        "gpu_hotpotqa",
        "How many proposals a minute on a real GPU, where answers are short?",
        gpu.answer,
        gpu.section,
        "random weights, simulated words",
        "gpu --workloads hotpotqa --minutes 1 --repeats 3 --concurrency 64",
        measures=GPU,
        quick=None,
        goals=gpu_goals,
    ),
    Bench(
        "gpu_aime",
        "How many proposals in the first minute on a real GPU, where an example takes one call?",
        gpu.answer,
        gpu.section,
        "random weights, simulated words",
        "gpu --workloads aime --minutes 1 --concurrency 64",
        measures=GPU,
        quick=None,
        goals=gpu_goals,
    ),
    Bench(
        "confirm",
        "Does a capable model confirm the scores and the time that the simulator shows?",
        confirm.answer,
        confirm.section,
        "one of your choice",
        measures=METHODS,
        quick=None,
    ),
    Bench(
        "confirm_rehearsal",
        "Does the command work that has a model confirm them?",
        confirm.answer,
        confirm.section,
        command="confirm --rehearse-on sim --tokens 10000000 --repeats 3 --calls 400 --validation 40 --held-out 80 "
        "--max-tokens 8192",
        measures=CONFIRM,
        quick="--repeats 1 --calls 80 --validation 20 --held-out 30",
        full="--train 100 --concurrency 16",
    ),
    Bench(
        "confirm_smollm2",
        "Does it work on a real server, with rows of IFBench?",
        confirm.answer,
        confirm.section,
        SMALL,
        "confirm --rehearse-on vllm-cpu",
        measures=CONFIRM,
        quick=None,
    ),
    Bench(
        "quality",
        "How soon does the default reach the held-out score that synchronous GEPA has after three hours?",
        quality.answer,
        quality_section,
        measures=(*GEPA, "bench/quality/runs.py", "bench/quality/methods.py"),
        goals=quality.goals,
    ),
    Bench(
        "quality_others",
        "Is the default sooner at that score than our own lockstep 4 and 16 wide, Combee and the other presets?",
        beside.others_answer,
        beside.others_section,
        command=beside.OTHERS_COMMAND,
        measures=(*GEPA, "flowevolve/algorithms/combee", "bench/quality/runs.py", "bench/quality/methods.py"),
        full="--worlds normal narrow adversarial harsh --seeds 4",
    ),
    Bench(
        "quality_without",
        "What does the default lose with one of its parts switched off?",
        beside.without_answer,
        beside.without_section,
        command=beside.WITHOUT_COMMAND,
        measures=(*GEPA, "bench/quality/runs.py", "bench/quality/methods.py"),
        full="--worlds normal narrow adversarial harsh --seeds 4",
    ),
    Bench(
        "equal_calls",
        "How does the drop-in for `gepa.optimize` compare with gepa's own loop at equal metric calls?",
        equal_calls.answer,
        equal_calls.section,
        command="equal_calls --seeds 10",
        measures=("flowevolve/compat/gepa", "flowevolve/engine", "policies", "stages", "bench/equal_calls/world.py"),
        quick="--seeds 1 --worlds plain",
        goals=equal_calls.goals,
    ),
    Bench(
        "gepa_modes",
        "How soon does the stream reach the score of our own lockstep loop?",
        gepa_modes.answer,
        gepa_modes.section,
        measures=GEPA,
    ),
    Bench(
        "gepa_adapter",
        "How many proposals a minute does the drop-in for `gepa.optimize` make?",
        gepa_adapter.answer,
        gepa_adapter.section,
        command="gepa_adapter --seconds 25 --repeats 3",
        measures=("flowevolve/compat/gepa", "flowevolve/engine", "policies", "stages", "bench/gepa_adapter/modes.py"),
        quick="--seconds 10 --repeats 1",
    ),
    Bench(
        "ablations",
        "What does each way of treating stale work lead to?",
        ablations.answer,
        ablations.section,
        measures=(*GEPA, "bench/ablations/questions.py"),
    ),
    Bench(
        "ace",
        "How soon does ACE's stream reach the score of its lockstep form?",
        ace.answer,
        ace.section,
        measures=(*RUNS, "flowevolve/algorithms/ace"),
    ),
    Bench(
        "meta_harness",
        "How many harnesses a minute does Meta-Harness propose as a stream, compared with lockstep?",
        meta_harness.answer,
        meta_harness.section,
        command="meta_harness --minutes 10 --width 24 --workers 12",
        measures=(*RUNS, "flowevolve/algorithms/meta_harness"),
        goals=meta_harness.goals,
    ),
    Bench(
        "algorithms",
        "How much faster than lockstep do the algorithms spend the same tokens as streams?",
        algorithms.answer,
        algorithms.section,
        measures=(*RUNS, "flowevolve/algorithms"),
    ),
    Bench(
        "algorithms_vllm_cpu",
        "How much faster than lockstep are streams on a real vLLM on two cores?",
        algorithms.answer,
        algorithms.section,
        SMALL,
        "algorithms --server vllm-cpu --minutes 3",
        measures=(*RUNS, "flowevolve/algorithms"),
        quick="--minutes 0.5",
    ),
    Bench(
        "programs",
        "Are LEVI and CodeEvolve better than plain searches at equal evaluations?",
        programs.answer,
        programs.section,
        measures=PROGRAMS,
        full="--ablations",
    ),
    Bench(
        "program_peers",
        "How does it compare with OpenEvolve, ShinkaEvolve, LEVI and SkyDiscover on programs?",
        program_peers.answer,
        program_peers.section,
        measures=(
            "flowevolve/algorithms/baselines",
            "flowevolve/engine",
            "flowevolve/sandbox",
            "flowevolve/sim/worlds/code",
            "bench/program_peers",
            ":(exclude)bench/program_peers/section.py",
        ),
        quick="--quick --not-alone",
    ),
    Bench(
        "families",
        "How far are the algorithms ahead of (1+λ) where another family of programs has to be found?",
        families.answer,
        families.section,
        measures=PROGRAMS,
        quick="--seeds 2 --evaluations 20",
    ),
    Bench(
        "families_long",
        "How far is CodeEvolve ahead of (1+λ) on this landscape with twice the evaluations?",
        families.answer,
        families.long_section,
        command=families.LONG,
        measures=PROGRAMS,
        quick="--seeds 1",
    ),
    Bench(
        "agent_ablations",
        "What are the parts of CSE and the agents of ContextEvolve worth?",
        agent_ablations.answer,
        agent_ablations.section,
        measures=PROGRAMS,
    ),
    Bench(
        "task_sequence",
        "What is CSE's global memory worth over a sequence of tasks?",
        task_sequence.answer,
        task_sequence.section,
        measures=(*PROGRAMS, "flowevolve/experience"),
        full="--seeds 5",
    ),
    Bench(
        "context_tokens",
        "How many tokens does a step of ContextEvolve take, compared with raw histories?",
        context_tokens.answer,
        context_tokens.section,
        measures=(*RUNS, "flowevolve/algorithms/context_evolve"),
    ),
    Bench(
        "levi_proxy",
        "How well do a few problems that LEVI chooses rank prompts?",
        levi_proxy.answer,
        levi_proxy.section,
        "none; scores are made up",
        measures=("flowevolve/algorithms/levi/proxy.py", "bench/levi_proxy/methods.py", "bench/levi_proxy/rankings.py"),
        goals=levi_proxy.goals,
    ),
    Bench(
        "evaluations",
        "How much of what the cores can do is left for programs?",
        evaluations.answer,
        evaluations.section,
        measures=("flowevolve/sandbox", "flowevolve/engine", "bench/evaluations/rates.py"),
        quick="--seconds 8",
        goals=evaluations.goals,
    ),
    Bench(
        "nodes",
        "How many evaluations a second are left where programs run on the nodes of a cluster?",
        nodes.answer,
        nodes.section,
        NONE,
        measures=("flowevolve/sandbox", "bench/nodes/rates.py"),
        quick="--seconds 4 --rounds 1",
        environment=".venv-ray",
        goals=nodes.goals,
    ),
    Bench(
        "overhead",
        "What does the machinery cost?",
        overhead.answer,
        overhead.section,
        NONE,
        measures=("flowevolve/engine", "flowevolve/llm", "flowevolve/journal", "bench/overhead/calls.py"),
        goals=overhead.goals,
    ),
    Bench(
        "scale",
        "How far does one core process go?",
        scale.answer,
        scale.section,
        measures=(
            "flowevolve/engine",
            "flowevolve/llm",
            "flowevolve/journal",
            "flowevolve/core/pool.py",
            "bench/scale/measurements.py",
        ),
        goals=scale.goals,
    ),
    Bench(
        "plan",
        "How near does a plan come to what a run then takes?",
        plan.answer,
        plan.section,
        measures=("flowevolve/runner/forecast", "bench/plan", ":(exclude)bench/plan/section.py"),
        goals=plan.goals,
    ),
    Bench(
        "sharing",
        "Do several runs at one server get equal parts of it?",
        sharing.answer,
        sharing.section,
        measures=("flowevolve/gateway", "flowevolve/llm/scheduling/request_queue.py", "bench/sharing/runs.py"),
        goals=sharing.goals,
    ),
    Bench(
        "page",
        "What does a run lose that is watched in three browsers?",
        page.answer,
        page.section,
        measures=("flowevolve/page", "flowevolve/journal", "bench/page/cost.py"),
        quick="--rounds 1 --candidates 1000",
        goals=page.goals,
    ),
    Bench(
        "durability",
        "What does a killed run lose?",
        durability.answer,
        durability.section,
        measures=(
            "flowevolve/journal",
            "flowevolve/engine",
            "flowevolve/runner/resume.py",
            "bench/durability/kills.py",
        ),
        full="--soak 30",
    ),
)
"""In the order of the page."""
