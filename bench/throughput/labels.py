"""The names of the methods on the page, in its order, and how other projects' methods were run."""

from __future__ import annotations

from collections.abc import Mapping

_WIDTHS = ("2x2", "4x4", "8x8", "1x8", "8x1", "2x8", "8x2")
LABELS: Mapping[str, str] = {
    "gepa_sync": "gepa 0.1.4, synchronous",
    **{f"gepa_pxn_{width}": f"gepa, PxN {width}" for width in _WIDTHS},
    "dspy_gepa_4x4": "dspy.GEPA 3.4.1, PxN 4x4",
    "agentdescent": "agentdescent 0.7.0, asynchronous, set for speed",
    "agentdescent_merging": "agentdescent 0.7.0, the same with its merging",
    "turbogepa": "TurboGEPA 0.1.6, on validation rows alone",
    "lockstep": "ours, lockstep",
    "lockstep_real": "ours, lockstep, in real time",
    "plain": "ours, `plain`",
    "stream": "ours, `stream`",
    "stream_time": "ours, `stream` with the aim `time`",
    "stream_real": "ours, `stream`, in real time",
    "stream_time_real": "ours, `stream` with the aim `time`, in real time",
    "careful": "ours, `careful`",
    "flashevolve": "ours, `flashevolve`",
    "combee_10": "ours, Combee, 10 reflections a proposal",
    "combee_40": "ours, Combee, 40 reflections a proposal",
    "ceiling": "load without end",
}
SETTINGS: Mapping[str, tuple[str, str]] = {
    "gepa": (
        "gepa",
        """\
0.1.4, the newest release. `batch_evaluate` and `reflect_many`, so that all rollouts and all reflections of a round go \
on side by side; `reflection_minibatch_size` 3; else its defaults, also for PxN""",
    ),
    "dspy_gepa": (
        "dspy.GEPA",
        """\
`num_threads` is the limit of calls in flight, `reflection_minibatch_size` 3, `use_merge` off, `sampling_strategy` \
PxN 4x4. The reflections of a round come one after another: dspy gives gepa its own proposer, and gepa calls that once \
for each proposal. Its program calls the task's own code and client""",
    ),
    "agentdescent": (
        "agentdescent",
        """\
set for speed: `n_workers` and `async_ratio` are a third of the calls in flight, as each \
worker has a minibatch of 3 (its defaults are 4 and 3); `FullStaleness`, so that no work is thrown away, in place of \
its guarded default; `eval_concurrency` is the limit of calls in flight. *With its merging*: `merge_round` is its \
`ReflectiveFusion`, with our prompt for merging, and `max_proposals` the number of workers; six, its default, was not \
tried. gepa has seven widths here, and it has this one""",
    ),
    "turbogepa": (
        "TurboGEPA",
        """\
`eval_concurrency` is the limit of calls in flight, one island, shards as its `adaptive_shards` chooses them, what \
makes it stop by itself switched off, spec induction off, as no simulated world answers its prompt; else its defaults. \
A reflection is shown 3 \
examples of one parent (6 by default), failures first, and its strategy of interleaved thinking is off. \
Its clock starts when the seed has its first result, on a part of the \
examples. What it leaves on the way to all examples, or validates without the slowest of them, is counted as stopped. \
Its client takes so much CPU time that the server runs at a third of the speed that it has for others""",
    ),
}
"""By the prefix of the methods' names: the label, and what differs from the method's defaults."""
