"""The runs that plans are checked against, and those that the widths of intervals were chosen on.

Each list was written before any of its runs was made. The name of a case is the seed from which its server's drift is
drawn.

There was a first set of twelve runs. Of the amounts that their budgets left open, 35 of 47 lay in their intervals,
whose median factor was 1.48, so the intervals were too narrow. These runs are among the tuning runs now, the widths of
intervals were chosen again on those, and a second set of twelve was drawn up before any of its runs was made. It has
each algorithm that evolves prompts, one that evolves programs, each preset of GEPA, each kind of budget but
evaluations, both kinds of server, and ten presets of the simulated model. Whatever preset a case is recorded with, the
plan assumes those that it has for its own range (`flowevolve.runner.forecast.doubts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

QWEN, API = "qwen3-8b-h100", "gpt-4o-mini-api"
PROGRAM = {"name": "program"}


@dataclass(frozen=True, slots=True)
class Case:
    """A run to be planned and recorded.

    ``sections`` is its configuration without the server. ``workload`` names one of `bench._lib.methods.workloads`,
    which replaces a task in the configuration. With ``http`` the server is a process of its own and time is real. If
    ``measured``, the plan is given the lengths of answers in a short run.
    """

    name: str
    profile: str
    world: str
    width: int
    budget: Mapping[str, float]
    sections: Mapping[str, object] = field(default_factory=dict)
    workload: str | None = None
    llm: Mapping[str, object] = field(default_factory=dict)
    http: bool = False
    measured: bool = True


TWELVE: Sequence[Case] = (
    Case("second: gepa default, ifbench", API, "noisy", 32, {"proposals": 60}, workload="ifbench"),
    Case("second: gepa default, hotpotqa", QWEN, "adversarial", 64, {"dollars": 1.0}, workload="hotpotqa"),
    Case("second: gepa plain, hover", API, "fickle", 16, {"minutes": 8}, {"preset": "plain"}, "hover"),
    Case("second: gepa plain, house style", QWEN, "harsh", 8, {"rollouts": 700}, {"preset": "plain"}, measured=False),
    Case("second: gepa lockstep, aime", QWEN, "lossy", 8, {"proposals": 30}, {"preset": "lockstep"}, "aime"),
    Case(
        "second: gepa flashevolve, ifbench",
        QWEN,
        "easy",
        48,
        {"tokens": 3_000_000},
        {"preset": "flashevolve"},
        "ifbench",
    ),
    Case(
        "second: gepa careful, house style, 200 requests a minute",
        API,
        "conflicting",
        32,
        {"minutes": 7},
        {"preset": "careful"},
        llm={"requests_per_minute": 200},
        measured=False,
    ),
    Case("second: ace, house style", API, "noisy", 16, {"dollars": 0.4}, {"algorithm": {"name": "ace"}}),
    Case("second: combee, house style", QWEN, "normal", 16, {"proposals": 15}, {"algorithm": {"name": "combee"}}),
    Case("second: gepa default, aime, http", QWEN, "interfering", 16, {"minutes": 3}, workload="aime", http=True),
    Case("second: gepa plain, house style, http", API, "harmful", 8, {"proposals": 30}, {"preset": "plain"}, http=True),
    Case(
        "second: context_evolve, circle packing, http",
        API,
        "normal",
        8,
        {"proposals": 60},
        {"algorithm": {"name": "context_evolve"}, "task": {**PROGRAM, "problem": "circle_packing_26"}},
        http=True,
    ),
)
"""The runs that the page's figures are computed from."""
TUNING: Sequence[Case] = (
    Case("gepa default, house style", QWEN, "noisy", 64, {"minutes": 10}, measured=False),
    Case("gepa plain, ifbench", QWEN, "easy", 32, {"proposals": 60}, {"preset": "plain"}, "ifbench"),
    Case("gepa lockstep, hotpotqa", API, "adversarial", 16, {"tokens": 4_000_000}, {"preset": "lockstep"}, "hotpotqa"),
    Case("gepa flashevolve, hover", QWEN, "harmful", 32, {"minutes": 8}, {"preset": "flashevolve"}, "hover"),
    Case(
        "gepa careful, aime, 300 requests a minute",
        API,
        "interfering",
        16,
        {"dollars": 0.3},
        {"preset": "careful"},
        "aime",
        {"requests_per_minute": 300},
    ),
    Case("ace, house style", QWEN, "lossy", 32, {"rollouts": 1200}, {"algorithm": {"name": "ace"}}),
    Case("combee, house style", API, "harsh", 32, {"minutes": 5}, {"algorithm": {"name": "combee"}}, measured=False),
    Case("gepa default, house style, http", QWEN, "fickle", 16, {"minutes": 4}, http=True),
    Case(
        "gepa plain, aime, http",
        QWEN,
        "conflicting",
        8,
        {"rollouts": 400},
        {"preset": "plain"},
        "aime",
        http=True,
    ),
    Case(
        "levi, circle packing, http",
        QWEN,
        "normal",
        8,
        {"evaluations": 100},
        {"algorithm": {"name": "levi"}, "task": {**PROGRAM, "problem": "circle_packing_26"}},
        http=True,
    ),
    Case(
        "code_evolve, bin packing, http",
        QWEN,
        "normal",
        16,
        {"tokens": 250_000},
        {"algorithm": {"name": "code_evolve"}, "task": {**PROGRAM, "problem": "online_bin_packing"}},
        http=True,
    ),
    Case(
        "one_plus_lambda, min-max distance, http",
        QWEN,
        "normal",
        8,
        {"minutes": 3},
        {"algorithm": {"name": "one_plus_lambda"}, "task": {**PROGRAM, "problem": "min_max_distance_2d"}},
        http=True,
        measured=False,
    ),
    Case("tuning: gepa default, hover", API, "normal", 32, {"minutes": 6}, workload="hover"),
    Case("tuning: gepa plain, house style", QWEN, "noisy", 16, {"proposals": 50}, {"preset": "plain"}, measured=False),
    Case("tuning: gepa lockstep, ifbench", QWEN, "easy", 32, {"tokens": 900_000}, {"preset": "lockstep"}, "ifbench"),
    Case("tuning: gepa flashevolve, aime", API, "lengthy", 32, {"dollars": 0.4}, {"preset": "flashevolve"}, "aime"),
    Case("tuning: ace, house style", API, "normal", 16, {"minutes": 6}, {"algorithm": {"name": "ace"}}, measured=False),
)
"""The runs that the widths of intervals were chosen on; they serve no other purpose."""
