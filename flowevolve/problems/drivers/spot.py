"""Runs a job with a deadline on cheap machines that come and go, or on expensive ones, as a program chooses."""

from collections.abc import Callable, Mapping


def harness_run(
    trace: list[bool], job: Mapping[str, float], choose: Callable[[dict[str, object]], object]
) -> tuple[float, list[object]]:
    """The dollars spent, and the choice of each step. ``trace`` says for each step whether a spot machine is available.

    ``choose`` is given what is known at the beginning of a step. A job that could miss its deadline if all went wrong
    gets a machine on demand instead of the one chosen.
    """
    step, deadline, restart = job["step"], job["deadline"], job["restart"]
    price = {"wait": 0.0, "spot": job["spot_price"], "on_demand": job["on_demand_price"]}
    left, starting, cost, running = job["work"], 0.0, 0.0, "wait"
    chosen: list[object] = []
    for number, available in enumerate(trace):
        if left < 1e-6:
            break
        if running == "spot" and not available:
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
                "available": available,
                "seen": trace[: number + 1],
            }
        )
        chosen.append(choice)
        takes = "on_demand" if choice == "on_demand" else "spot" if choice == "spot" and available else "wait"
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


def harness_play(traces: list[list[bool]], job: dict[str, float]) -> list[list[object]]:
    return [harness_run(trace, job, harness_choice)[1] for trace in traces]


def harness_ask_again(asked: list[list[dict[str, object]]]) -> list[object]:
    return [harness_choice(state) for (state,) in asked]
