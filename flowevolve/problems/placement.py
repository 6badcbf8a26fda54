"""Model placement (PRISM): placing language models on GPUs so that none is short of memory for its requests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, whole_number
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError

MEMORY_GB = 80


class Model(Row):
    """A language model: its size in gigabytes, its requests a second, and its latency target. Fields are ADRS's."""

    model_size: float = Field(ge=0)
    req_rate: float = Field(gt=0)
    slo: float = Field(gt=0)

    @property
    def demand(self) -> float:
        """The requests a second divided by the latency target."""
        return self.req_rate / self.slo


class PlacementRow(Row):
    """A cluster of equal GPUs and the models to place on them, with ADRS's fields."""

    gpu_num: int = Field(gt=0)
    gpu_mem_gb: float = Field(default=MEMORY_GB, gt=0)
    models: tuple[Model, ...] = Field(min_length=1)


class ModelPlacement(ShippedProblem):
    """Each model on one GPU. Value of a case: 1 over the pressure on the GPU that has the most.

    This is ADRS's form of PRISM: the pressure on a GPU is the sum of request rate over latency target of its models,
    divided by the memory that they leave for the KV cache. Papers give 1 plus 1 over the mean pressure on 50 instances,
    which can be given as ``data``. In that scale a greedy placement, which is our seed, has 21.89 (ContextEvolve, table
    1), and the best one, which most methods find, 26.26 (LEVI, table 1). A mean of reciprocals is not the reciprocal of
    the mean (21.75 against 20.89 for the seed), so there is no reference: compare the mean of the metric ``pressure``,
    which is 1 / 25.26 at best.
    """

    name = "model_placement"
    entry = "place"

    def __init__(
        self,
        data: Path | None = None,
        instances: int = 20,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        self._clusters = read_rows(data, PlacementRow) if data is not None else drawn_clusters(instances, seed)
        self.cases = [Case(str(place), _arguments(each)) for place, each in enumerate(self._clusters)]
        self.statement = (
            "Place language models on GPUs so that no GPU is under much pressure.\n\n"
            "Write `place(gpus, memory, models)`, called once for each cluster. `gpus` is the number of GPUs, `memory` "
            'the gigabytes of each, `models` a list of {"size": gigabytes, "rate": requests a second, "slo": latency '
            "target}. It returns a list with one GPU for each model, a number from 0 to gpus - 1. The models of a GPU "
            "must leave some of its memory free. A GPU's pressure is the sum of rate / slo of its models, divided by "
            "the memory they leave free.\n\n"
            "The score of a cluster is 1 / (the highest pressure of any GPU), and the mean counts over "
            f"{len(self.cases)} clusters. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        cluster = self._clusters[int(case.id)]
        places = [
            whole_number(gpu, f"the GPU of model {model}", cluster.gpu_num)
            for model, gpu in enumerate(list_of(result, "the list of GPUs", len(cluster.models)))
        ]
        pressures = [_pressure(cluster, places, gpu) for gpu in range(cluster.gpu_num)]
        highest = max(pressures)
        busiest = pressures.index(highest)
        models = [model for model, gpu in enumerate(places) if gpu == busiest]
        return Verdict(
            1 / highest,
            f"The highest pressure is {highest:.5f}, on GPU {busiest} with models {', '.join(map(str, models))}; the "
            f"lowest is {min(pressures):.5f}, and if all were equal they would be {_shared(cluster):.5f}.",
            metrics={"pressure": highest},
        )


def _pressure(cluster: PlacementRow, places: Sequence[int], gpu: int) -> float:
    models = [model for model, place in enumerate(places) if place == gpu]
    free = cluster.gpu_mem_gb - sum(cluster.models[model].model_size for model in models)
    if free <= 0:
        raise WrongResultError(
            f"GPU {gpu} has {cluster.gpu_mem_gb:g} GB, and its models {', '.join(map(str, models))} leave {free:g} GB "
            "free; some must be left"
        )
    return sum(cluster.models[model].demand for model in models) / free


def _shared(cluster: PlacementRow) -> float:
    """A lower bound on the highest pressure: the pressure on all GPUs if models could be divided among them."""
    free = cluster.gpu_num * cluster.gpu_mem_gb - sum(model.model_size for model in cluster.models)
    return sum(model.demand for model in cluster.models) / free


def _arguments(cluster: PlacementRow) -> dict[str, JSON]:
    models: list[JSON] = [
        {"size": model.model_size, "rate": model.req_rate, "slo": model.slo} for model in cluster.models
    ]
    return {"gpus": cluster.gpu_num, "memory": cluster.gpu_mem_gb, "models": models}


def drawn_clusters(instances: int, seed: int) -> list[PlacementRow]:
    """Draw clusters of 5 to 9 GPUs with two models for each, as ADRS does: all numbers are uniform integers."""
    check_least(1, instances=instances)
    rng = random.Random(f"placement {seed}")
    found = []
    for _ in range(instances):
        gpus = rng.randint(5, 9)
        models = tuple(
            Model(model_size=rng.randint(10, 29), req_rate=rng.randint(1, 9), slo=rng.randint(5, 9))
            for _ in range(2 * gpus)
        )
        found.append(PlacementRow(gpu_num=gpus, gpu_mem_gb=MEMORY_GB, models=models))
    return found
