"""Runs a job with a deadline on cheap machines that come and go, or on expensive ones, as a program chooses."""

from collections.abc import Callable, Mapping, Sequence


def harness_run(
    trace: list[bool], job: Mapping[str, float], choose: Callable[[dict[str, object]], object]
) -> tuple[float, list[object]]:
    """The dollars spent, and the choice of each step. ``trace`` says for each step whether a spot machine is available.

    ``choose`` is given what is known at the beginning of a step. A job that could miss its deadline if all went wrong
    gets a machine on demand instead of the one chosen.
    """

    def choose_kind(state: dict[str, object]) -> list[object]:
        del state["region"]
        number = round(float(str(state["elapsed"])) / job["step"])
        state.update(available=trace[number], seen=trace[: number + 1])
        return [choose(state), 0]

    cost, chosen = harness_travel([trace], job, choose_kind)
    return cost, [kind for kind, _ in chosen]


def harness_travel(
    regions: list[list[bool]], job: Mapping[str, float], choose: Callable[[dict[str, object]], Sequence[object]]
) -> tuple[float, list[Sequence[object]]]:
    """As `harness_run` in several regions, with a trace each: a choice is a kind of machine and the region it is in.

    The job begins in the first region. After a move to another region, the machine there must be started.
    """
    step, deadline, restart = job["step"], job["deadline"], job["restart"]
    price = {"wait": 0.0, "spot": job["spot_price"], "on_demand": job["on_demand_price"]}
    left, starting, cost, running, here = job["work"], 0.0, 0.0, "wait", 0
    chosen: list[Sequence[object]] = []
    for number in range(len(regions[0])):
        if left < 1e-6:
            break
        if running == "spot" and not regions[here][number]:
            running, starting = "wait", 0.0
        elapsed = number * step
        choice = choose(
            {
                "elapsed": elapsed,
                "deadline": deadline,
                "left": left,
                "step": step,
                "restart": restart,
                "starting": starting,
                "running": running,
                "region": here,
                "available": [trace[number] for trace in regions],
                "seen": [trace[: number + 1] for trace in regions],
            }
        )
        chosen.append(choice)
        kind, region = choice[0], int(str(choice[1]))
        if region != here:
            running, starting, here = "wait", 0.0, region
        takes = "on_demand" if kind == "on_demand" else "spot" if kind == "spot" and regions[here][number] else "wait"
        after, still_starting = harness_step(left, step, takes, starting if takes == running else restart)
        if after >= 1e-6 and elapsed + step + restart + after > deadline:
            takes = "on_demand"
            after, still_starting = harness_step(left, step, takes, starting if takes == running else restart)
        left, starting, running = after, still_starting, takes
        cost += price[takes] * step / 3600
    return cost, chosen


def harness_step(left: float, step: float, takes: str, starting: float) -> tuple[float, float]:
    """The seconds of work, and of starting the machine, that are left after a step."""
    if takes == "wait":
        return left, 0.0
    return left - max(0.0, step - starting), max(0.0, starting - step)


def harness_choice(state: dict[str, object]) -> object:
    choice = globals()["decide"](dict(state))
    if choice not in ("wait", "spot", "on_demand"):
        raise ValueError(f"decide must return 'wait', 'spot' or 'on_demand', not {choice!r}")
    return choice


def harness_choice_of_region(state: dict[str, object]) -> list[object]:
    choice = list(globals()["decide"](dict(state)))
    regions = len(list(state["available"])) if isinstance(state["available"], list) else 0
    if len(choice) != 2 or choice[0] not in ("wait", "spot", "on_demand") or choice[1] not in range(regions):
        raise ValueError(f"decide must return 'wait', 'spot' or 'on_demand', and a region's number, not {choice!r}")
    return [choice[0], int(choice[1])]


def harness_play(traces: list[list[bool]], job: dict[str, float]) -> list[list[object]]:
    return [harness_run(trace, job, harness_choice)[1] for trace in traces]


def harness_play_regions(journeys: list[list[list[bool]]], job: dict[str, float]) -> list[list[Sequence[object]]]:
    return [harness_travel(regions, job, harness_choice_of_region)[1] for regions in journeys]


def harness_ask_again(asked: list[list[dict[str, object]]]) -> list[object]:
    return [harness_choice(state) for (state,) in asked]


def harness_ask_again_regions(asked: list[list[dict[str, object]]]) -> list[object]:
    return [harness_choice_of_region(state) for (state,) in asked]
