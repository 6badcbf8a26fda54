"""Balancing experts (EPLB): placing copies of a model's experts on GPUs by earlier loads, to balance later ones."""

from __future__ import annotations

import math
import random
from pathlib import Path

from pydantic import Field

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, whole_number
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError

Loads = tuple[tuple[float, ...], ...]
"""The loads of experts, by layer and expert."""
CHANGE = 0.15
"""How much drawn loads change from one time to the next: the standard deviation of their logarithms."""


class BalanceRow(Row):
    """An instance, with the names of EPLB's arguments. ``next_weight`` are the loads to come, if they differ."""

    weight: Loads = Field(min_length=1)
    next_weight: Loads | None = None
    num_replicas: int = Field(gt=0)
    num_gpus: int = Field(gt=0)


class ExpertBalance(ShippedProblem):
    """A place for every copy of every expert. Value of a case: the mean over the highest load of a GPU, with later
    loads.

    This is the measure of balance in ADRS's EPLB: mean and maximum are each summed over the layers before they are
    divided. Published scores mix it with the running time on some machine, and rest on recorded loads that are not
    available, so there is no reference. Here, running time counts only through the time limit, so that scores don't
    depend on the machine.
    """

    name = "expert_balance"
    entry = "balance"

    def __init__(
        self,
        data: Path | None = None,
        layers: int = 4,
        experts: int = 64,
        slots: int = 288,
        gpus: int = 32,
        instances: int = 5,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        self._rows = (
            read_rows(data, BalanceRow)
            if data is not None
            else drawn_rows(layers, experts, slots, gpus, instances, seed)
        )
        for place, row in enumerate(self._rows, 1):
            _check(row, f"{data}: row {place}" if data is not None else "expert_balance")
        self.cases = [
            Case(
                str(place),
                {"loads": [[*layer] for layer in row.weight], "slots": row.num_replicas, "gpus": row.num_gpus},
            )
            for place, row in enumerate(self._rows)
        ]
        self.statement = (
            "In each layer of a model, experts share the work, some much more of it than others. Copies of experts lie "
            "in slots of GPUs; the copies of an expert share its load equally. Lay them out so that GPUs have equal "
            "loads.\n\n"
            "Write `balance(loads, slots, gpus)`, called once for each instance. `loads[layer][expert]` are loads "
            "measured a while ago, `slots` is how many there are in a layer, `gpus` how many GPUs. It returns for each "
            "layer a list of `slots` experts: slot i lies on GPU i // (slots // gpus). Every expert must be in each "
            "layer's list at least once.\n\n"
            "The score of an instance is the mean load of a GPU over the highest, each summed over the layers, with "
            "the loads of a while later, which differ a little; the mean counts over "
            f"{len(self.cases)} instances. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        row = self._rows[int(case.id)]
        loads = row.next_weight or row.weight
        layers = list_of(result, "the result", len(loads))
        means, highest = [], []
        for number, (layer, expected) in enumerate(zip(layers, loads, strict=True)):
            slots = _slots(layer, f"layer {number}", len(expected), row.num_replicas)
            by_gpu = gpu_loads(slots, expected, row.num_gpus)
            means.append(math.fsum(by_gpu) / row.num_gpus)
            highest.append(max(by_gpu))
        value = math.fsum(means) / math.fsum(highest)
        ratios = [mean / most for mean, most in zip(means, highest, strict=True)]
        worst = ratios.index(min(ratios))
        return Verdict(
            value,
            f"The mean load is {value:.4f} of the highest. Worst is layer {worst} with {ratios[worst]:.4f}.",
        )


def _slots(value: JSON, what: str, experts: int, slots: int) -> list[int]:
    found = [
        whole_number(expert, f"{what}, slot {slot}", experts) for slot, expert in enumerate(list_of(value, what, slots))
    ]
    missing = sorted(set(range(experts)) - set(found))
    if missing:
        raise WrongResultError(f"{what} has no copy of expert {missing[0]}; {len(missing)} experts are missing")
    return found


def gpu_loads(slots: list[int], loads: tuple[float, ...], gpus: int) -> list[float]:
    """The load of each GPU in one layer. The copies of an expert share its load equally."""
    copies = [slots.count(expert) for expert in range(len(loads))]
    size = len(slots) // gpus
    return [
        math.fsum(loads[expert] / copies[expert] for expert in slots[gpu * size : (gpu + 1) * size])
        for gpu in range(gpus)
    ]


def _check(row: BalanceRow, where: str) -> None:
    """Check that an instance has a solution.

    Raises:
        InputError: if it has none.
    """
    shapes = {tuple(map(len, loads)) for loads in (row.weight, row.next_weight) if loads is not None}
    experts = len(row.weight[0])
    if shapes != {(experts,) * len(row.weight)}:
        raise InputError(f"{where}: every layer must have loads of the same experts")
    if not 0 < experts <= row.num_replicas or row.num_replicas % row.num_gpus:
        raise InputError(
            f"{where}: {row.num_replicas} slots are not possible with {experts} experts and {row.num_gpus} GPUs; give "
            "at least as many slots as experts, and a multiple of the number of GPUs"
        )
    for loads in (row.weight, row.next_weight or row.weight):
        if any(not (math.isfinite(load) and load >= 0) for layer in loads for load in layer):
            raise InputError(f"{where}: loads must be finite and not below 0")
        if any(sum(layer) == 0 for layer in loads):
            raise InputError(f"{where}: each layer must have a load above 0")


def drawn_rows(layers: int, experts: int, slots: int, gpus: int, instances: int, seed: int) -> list[BalanceRow]:
    """Draw loads whose logarithms are normal with standard deviation 1, and which change from one time to the next."""
    check_least(1, layers=layers, experts=experts, slots=slots, gpus=gpus, instances=instances)
    rng = random.Random(f"experts {seed}")
    rows = []
    for _ in range(instances):
        before = [[rng.lognormvariate(5, 1) for _ in range(experts)] for _ in range(layers)]
        after = [[load * rng.lognormvariate(0, CHANGE) for load in layer] for layer in before]
        rows.append(BalanceRow(weight=_rounded(before), next_weight=_rounded(after), num_replicas=slots, num_gpus=gpus))
    return rows


def _rounded(loads: list[list[float]]) -> Loads:
    return tuple(tuple(float(max(1, round(load))) for load in layer) for layer in loads)
