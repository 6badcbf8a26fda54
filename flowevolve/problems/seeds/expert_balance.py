"""Slots go to experts in proportion to their loads, and are dealt out to the GPUs in turn."""

# EVOLVE-BLOCK-START
POWER = 0.5
"""Of a load, in what an expert's share of the slots is proportional to."""
HEAVY_FIRST = 0.0
"""1: the copies with most load are dealt out first; 0: in the order of experts."""


def copies_of(loads: list[float], slots: int) -> list[int]:
    """How many copies each expert gets: one, and then one at a time whoever is worth it most."""
    copies = [1] * len(loads)
    for _ in range(slots - len(loads)):
        best = max(range(len(loads)), key=lambda expert: loads[expert] ** POWER / copies[expert])
        copies[best] += 1
    return copies


def lay_out(loads: list[float], slots: int, gpus: int) -> list[int]:
    copies = copies_of(loads, slots)
    every = [expert for expert, count in enumerate(copies) for _ in range(count)]
    every.sort(key=lambda expert: -HEAVY_FIRST * loads[expert] / copies[expert])
    return [expert for gpu in range(gpus) for expert in every[gpu::gpus]]


def balance(loads: list[list[float]], slots: int, gpus: int) -> list[list[int]]:
    return [lay_out(layer, slots, gpus) for layer in loads]


# EVOLVE-BLOCK-END
