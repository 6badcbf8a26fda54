"""The most demanding models first, each to the GPU that is under least pressure."""

# EVOLVE-BLOCK-START
SIZE = 0.0
"""What a gigabyte counts in the order of models, against a unit of demand."""
AFTER = 0.0
"""How much the pressure after a model's coming counts, against the one before."""


def placed_first(model: dict[str, float]) -> float:
    """The higher, the earlier a model is placed."""
    return model["rate"] / model["slo"] + SIZE * model["size"]


def choose(model: dict[str, float], free: list[float], demand: list[float]) -> int:
    """The GPU for a model, among those with memory to spare; the first one where there is none."""
    fitting = [gpu for gpu, left in enumerate(free) if left > model["size"]]

    def worth(gpu: int) -> float:
        before = demand[gpu] / free[gpu]
        after = (demand[gpu] + model["rate"] / model["slo"]) / (free[gpu] - model["size"])
        return (1 - AFTER) * before + AFTER * after

    return min(fitting, key=worth, default=0)


def place(gpus: int, memory: float, models: list[dict[str, float]]) -> list[int]:
    free = [memory] * gpus
    demand = [0.0] * gpus
    chosen = [0] * len(models)
    for number in sorted(range(len(models)), key=lambda each: -placed_first(models[each])):
        model = models[number]
        gpu = choose(model, free, demand)
        free[gpu] -= model["size"]
        demand[gpu] += model["rate"] / model["slo"]
        chosen[number] = gpu
    return chosen


# EVOLVE-BLOCK-END
