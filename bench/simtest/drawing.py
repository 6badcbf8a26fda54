"""Drawing a case from its seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from bench.simtest.case import DEEDS, FAULT_KINDS, Act, Case, FaultKind, Life
from bench.simtest.server import MODELS, PROFILES
from bench.simtest.trial import plan_of
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.engine.contract import check_gathering
from flowevolve.runner.plan import flows_of

Settings = dict[str, JSON]
_TRIES = 50
_KILLS = ("kill", "kill", "kill", "abandon", "disk full")
_STEERING = ("veto", "veto", "veto", "approve", "approve", "comment", "raise", "raise", "edit")
_OUTAGES: Sequence[FaultKind] = ("refused", "unreachable", "overloaded", "error", "unreadable", "evaluation raises")
_GENTLE = ("pause", "pause", "pause items", "pause items", "inject", "inject", "inject", "stop", "cancel")


def draw(seed: int) -> Case:
    """The case of a seed: always the same one."""
    rng = random.Random(f"simtest {seed}")
    for _ in range(_TRIES):
        case = _draw(seed, rng)
        if may_be_run(case):
            case = replace(case, settings={**case.settings, **_stages(rng, case)})
            if may_be_run(case):
                case = _steered(random.Random(f"simtest steering {seed}"), case)
                return _with_outages(random.Random(f"simtest outages {seed}"), case)
    raise AssertionError(f"seed {seed}: no case could be drawn")


def _steered(rng: random.Random, case: Case) -> Case:
    """The case itself or, half of the time, one in which somebody who watches the run steers it."""
    if rng.random() < 0.5:
        return case
    lives = [
        replace(
            life, acts=(*life.acts, *(_later(_act(rng, rng.choice(_STEERING))) for _ in range(rng.choice([0, 3, 8]))))
        )
        for life in case.lives
    ]
    return replace(case, lives=tuple(lives))


def _with_outages(rng: random.Random, case: Case) -> Case:
    """The case itself or, now and then, one in which all calls or evaluations fail in one process and none in the next,
    as when a key was revoked and renewed.
    """
    if len(case.lives) == 1 or rng.random() < 0.7:
        return case
    lives = list(case.lives)
    place = rng.randrange(len(lives) - 1)
    lives[place] = replace(lives[place], faults={rng.choice(_OUTAGES): 1.0})
    lives[place + 1] = replace(lives[place + 1], faults={})
    return replace(case, lives=tuple(lives))


def _later(act: Act) -> Act:
    """The act at a later time, when there is something that it could be about."""
    return replace(act, at=3 * act.at)


def may_be_run(case: Case) -> bool:
    """Whether the settings of a case go together."""
    try:
        for life in range(len(case.lives)):
            plan = plan_of(case, life)
            check_gathering(plan.algorithm.graph(), flows_of(plan.config, plan.algorithm), plan.config.algorithm.mode)
    except InputError:
        return False
    return True


def _draw(seed: int, rng: random.Random) -> Case:
    settings: Settings = {"clock": "virtual", "preset": "plain", "seed": rng.randrange(1000), "sim.profile": "instant"}
    settings |= {"stopping.unproductive": 40, "stopping.unevaluated": 40}
    algorithm = rng.choice([*_ALGORITHMS, "gepa", "gepa", "gepa", "combee", "levi"])
    settings |= {"algorithm.name": algorithm, "sim.world": "code"}
    settings |= _ALGORITHMS[algorithm](rng)
    settings |= _budget(rng) | _driving(rng, algorithm) | _llm(rng, algorithm)
    lives = [_life(rng, {})]
    while rng.random() < 0.65 and len(lives) < 7:
        lives.append(_life(rng, _changes(rng, settings)))
    if rng.random() < 0.9:  # the last process may end by itself
        acts = tuple(act for act in lives[-1].acts if act.deed not in _KILLS)
        lives[-1] = replace(lives[-1], acts=acts)
    return Case(
        seed,
        settings,
        _faults(rng),
        tuple(lives),
        profile=rng.choice(list(PROFILES)),
        disk_seconds=rng.choice([0.0, 0.0, 0.02, 1.5]),
    )


def _some(rng: random.Random, share: float, **options: Sequence[JSON]) -> Settings:
    """Settings for this share of the options, each with one of its values; ``__`` in a name stands for a dot."""
    return {name.replace("__", "."): rng.choice(values) for name, values in options.items() if rng.random() < share}


# Algorithms


def _gepa(rng: random.Random) -> Settings:
    shared: Settings = {"sim.world": "rules", "algorithm.minibatch": rng.choice([1, 2, 3])}
    if rng.random() < 0.5:
        shared["preset"] = rng.choice(["default", "flashevolve", "careful", "lockstep"])
        return shared | _some(
            rng, 0.3, algorithm__finalists=[0, 2, 4], algorithm__final_examples=[3, 8], algorithm__prune=[True, False]
        )
    return shared | _some(
        rng,
        0.3,
        algorithm__candidate_selection=["current_best", "epsilon_greedy", "top_k_pareto"],
        algorithm__acceptance=["improvement_or_equal", "paired"],
        algorithm__validation=["everything", "improvement", "front"],
        algorithm__skip_perfect=[False],
        algorithm__merge=[True],
        algorithm__group=[True],
        algorithm__prune=[True],
        algorithm__finalists=[2, 3],
        algorithm__final_examples=[3, 8],
        algorithm__balance=[0.3, 2.0],
        racing__policy=["bound", "confidence", "prefix"],
        speculation__alpha__generate=[0.34, 0.67],
        speculation__alpha__evaluate=[0.3, 0.6],
        speculation__hold=[True],
        speculation__reorder=[True],
    )


def _combee(rng: random.Random) -> Settings:
    batch: Settings = {"sim.world": "rules", "algorithm.batch": rng.choice([2, 3, 5]), "algorithm.minibatch": 2}
    return batch | _some(
        rng, 0.4, algorithm__copies=[1, 3], algorithm__fan_in=[2, 3], algorithm__batch_size=["dynamic"]
    )


def _ace(rng: random.Random) -> Settings:
    world: Settings = {"sim.world": "rules"}
    return world | _some(
        rng,
        0.4,
        algorithm__adaptation=["online"],
        algorithm__epochs=[1, 2, 3],
        algorithm__validate_every=[3, 7],
        algorithm__window=[2, 4],
        algorithm__max_rounds=[1, 2],
        algorithm__curator_frequency=[2, 3],
        algorithm__fan_in=[2],
        algorithm__refine_every=[0, 2],
        algorithm__duplicate=[0.7],
        algorithm__embedding__by=["hashing"],
    )


def _writing(rng: random.Random) -> Settings:
    return _some(
        rng,
        0.3,
        algorithm__form=["edits", "whole", "mixed"],
        algorithm__all_edits=[True],
    )


def _levi(rng: random.Random) -> Settings:
    opening: Settings = {"algorithm.seeds": rng.choice([0, 1, 2]), "algorithm.variants": rng.choice([0, 1, 3])}
    opening["sim.world"] = rng.choice(["code", "rules"])
    return opening | _some(
        rng,
        0.4,
        algorithm__cells=[3, 8],
        algorithm__centroids=["uniform"],
        algorithm__shift_every=[0, 3],
        algorithm__shift_stagnation=[0, 4],
        algorithm__shift_variants=[0, 2],
        algorithm__advice_every=[0, 4],
        algorithm__cascade_examples=[1],
        algorithm__proxy=[2],
        algorithm__finalists=[1, 2],
        algorithm__minibatch=[1, 2],
    )


def _code_evolve(rng: random.Random) -> Settings:
    return _writing(rng) | _some(
        rng,
        0.5,
        algorithm__islands=[1, 2, 3],
        algorithm__start_programs=[0, 1, 2],
        algorithm__prompts=[2, 4],
        algorithm__archive__name=["grid", "naive"],
        algorithm__archive__cells=[4, 9],
        algorithm__archive__size=[3],
        algorithm__migration__every=[2, 4],
        algorithm__migration__rate=[0.5],
        algorithm__migration__topology=["complete", "empty"],
    )


def _context_evolve(rng: random.Random) -> Settings:
    return _writing(rng) | _some(
        rng,
        0.3,
        algorithm__summarizer=[False],
        algorithm__navigator=[False],
        algorithm__sampler=[False],
        algorithm__raw_history=[2],
        algorithm__guidance_age=[0, 3],
        algorithm__failed_parents=[True],
    )


def _cse(rng: random.Random) -> Settings:
    plans: Settings = {"algorithm.plans": rng.choice([1, 2, 3])}
    return plans | _some(
        rng,
        0.3,
        algorithm__planning=[False],
        algorithm__evolution=[False],
        algorithm__local_memory=[False],
        algorithm__compress_tokens=[150, 400],
        algorithm__form=["edits", "mixed"],
    )


def _meta_harness(rng: random.Random) -> Settings:
    shared: Settings = {"sim.world": "harness", "algorithm.candidates": rng.choice([1, 2, 3])}
    return shared | _some(
        rng,
        0.4,
        algorithm__rounds=[2, 4],
        algorithm__tries=[0, 1],
        algorithm__batch=[2, 4],
        algorithm__test=[False],
        algorithm__run_seconds=[4.0],
    )


_ALGORITHMS: dict[str, Callable[[random.Random], Settings]] = {
    "gepa": _gepa,
    "combee": _combee,
    "ace": _ace,
    "levi": _levi,
    "best_of_n": _writing,
    "one_plus_lambda": _writing,
    "code_evolve": _code_evolve,
    "context_evolve": _context_evolve,
    "cse": _cse,
    "meta_harness": _meta_harness,
}

# What all have in common


def _budget(rng: random.Random) -> Settings:
    """One limit or several, and sometimes a target, which alone might never be reached."""
    limits: dict[str, Sequence[JSON]] = {
        "proposals": [4, 12, 30],
        "rollouts": [40, 120, 250],
        "evaluations": [4, 12, 30],
        "tokens": [6_000, 30_000, 80_000],
        "dollars": [0.02, 0.1],
        "seconds": [30, 80, 200],
    }
    chosen = rng.sample(list(limits), rng.choice([1, 1, 1, 2, 3]))
    settings: Settings = {f"budget.{name}": rng.choice(limits[name]) for name in chosen}
    return settings | _some(rng, 0.15, budget__target_score=[0.5, 0.7, 0.95])


def _driving(rng: random.Random, algorithm: str) -> Settings:
    """How the graph is run: stream or lockstep, widths, workers, and the policies that decide on them."""
    mode: Settings = {"algorithm.mode": "sync", "algorithm.width": rng.choice([1, 2, 5])}
    if rng.random() < 0.7:
        mode = {"algorithm.mode": "stream", "algorithm.max_in_flight": rng.choice(["auto", 2, 5, 12, 24])}
    return (
        mode
        | _staleness(rng)
        | _some(
            rng,
            0.3,
            algorithm__aim=["score", "time"],
            scheduler__order__policy=["fifo"],
            stopping__no_improvement=[3, 8],
            stopping__unproductive=[5, 20],
            stopping__unevaluated=[4, 12],
            stopping__fruitless=[12, 30],
            drain_seconds=[0, 3, 30],
            allocation__policy=["median_rate", "pressure", "bench.simtest.policies:Erratic"],
        )
    )


def _staleness(rng: random.Random) -> Settings:
    match rng.choice(["", "full", "guarded", "guarded", "reflective", "reflective"]):
        case "guarded":
            return {"staleness.policy": "guarded", "staleness.max_gap": rng.choice([0, 1, 3])}
        case "reflective":
            repairs: Settings = {"staleness.policy": "reflective", "staleness.min_gap": rng.choice([1, 2])}
            return repairs | {"staleness.max_repairs": rng.choice([0, 1, 3])}
        case "full":
            return {"staleness.policy": "full"}
        case _:
            return {}


def _stages(rng: random.Random, case: Case) -> Settings:
    """Workers of some stages, so few that items wait for them, and bounds that allocation may use."""
    settings: Settings = {}
    for stage in plan_of(case, 0).algorithm.graph().stages:
        if not stage.commits and not stage.exclusive and rng.random() < 0.3:
            settings[f"stages.{stage.name}.workers"] = rng.choice([1, 1, 2, 3])
            settings[f"stages.{stage.name}.max_workers"] = rng.choice([3, 6])
    return settings


def _llm(rng: random.Random, algorithm: str) -> Settings:
    settings: Settings = {"llm.concurrency": rng.choice([1, 3, 8, 32]), "llm.timeout_seconds": 60.0}
    settings |= {"llm.prices.simulated.input": 1.0, "llm.prices.simulated.output": 4.0}
    if rng.random() < 0.25:
        settings["scheduler.admission.policy"] = rng.choice(["server_queue", "latency"])
        settings |= _some(rng, 0.8, scheduler__admission__interval_seconds=[0.5, 4.0])
        settings |= _some(rng, 0.5, scheduler__admission__start=[4, 8], scheduler__admission__least=[1, 2])
    return (
        settings
        | _ensemble(rng, algorithm)
        | _some(
            rng,
            0.2,
            llm__retries=[0, 2],
            llm__patience_seconds=[100.0, 600.0],
            llm__hedge=[0.2],
            llm__requests_per_minute=[40, 200],
        )
    )


def _ensemble(rng: random.Random, algorithm: str) -> Settings:
    """Now and then, several models for one of the roles, and a limit for that role alone."""
    role = {"meta_harness": "proposer", "levi": "small", "gepa": "reflection", "combee": "reflection"}.get(
        algorithm, "code"
    )
    if algorithm == "ace" or rng.random() < 0.75:
        return {}
    settings: Settings = {f"llm.prices.{name}.{way}": 2.0 for name in MODELS for way in ("input", "output")}
    settings[f"llm.roles.{role}.models"] = [{"model": name} for name in MODELS]
    if rng.random() < 0.5:
        settings[f"llm.roles.{role}.bandit"] = "ucb"
    if rng.random() < 0.5:
        settings[f"llm.roles.{role}.concurrency"] = rng.choice([1, 2])
    return settings


def _faults(rng: random.Random) -> dict[FaultKind, float]:
    """No faults, or some kinds. A refusal ends the run, so refusals are rare."""
    if rng.random() < 0.25:
        return {}
    kinds = rng.sample(FAULT_KINDS, rng.randrange(1, 8))
    return {kind: rng.choice([0.002, 0.01] if kind == "refused" else [0.05, 0.1, 0.2]) for kind in kinds}


def _life(rng: random.Random, changes: Settings) -> Life:
    """A process: what is done to it, most often including its violent end."""
    acts = [_act(rng, rng.choice(_GENTLE)) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    if rng.random() < 0.9:
        acts.append(_act(rng, rng.choice(_KILLS)))
    return Life(tuple(acts), changes)


def _act(rng: random.Random, deed: str) -> Act:
    return Act(round(10 ** rng.uniform(0.5, 2.6)), next(each for each in DEEDS if each == deed), round(rng.random(), 3))


def _changes(rng: random.Random, settings: Settings) -> Settings:
    """The settings that change when a run goes on, most often none."""
    changes = _some(
        rng,
        0.08,
        drain_seconds=[5],
        scheduler__order__policy=["later_first"],
        llm__concurrency=[2, 16],
        allocation__policy=["fixed", "pressure"],
    )
    if settings.get("sim.world") == "rules":
        changes |= _some(rng, 0.05, held_out=[True])
    if settings["algorithm.mode"] == "stream" and rng.random() < 0.1:
        changes["algorithm.max_in_flight"] = rng.choice([1, 3, "auto"])
    for name, value in settings.items():
        if name.startswith("budget.") and name != "budget.target_score" and rng.random() < 0.3:
            assert isinstance(value, int | float)
            changes[name] = value * 2
    return changes
