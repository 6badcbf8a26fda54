"""The section of the page on this bench: how well small benchmarks rank prompts."""

from __future__ import annotations

from bench._lib.text import Content, Verdicts, table

WHAT = """\
The figures say how well a few problems rank prompts in the order that all problems give them. They are Spearman's rank
correlation over prompts that no method has seen, as the mean of {splits} random splits. The scores are *made up*: an
item response model with {skills} skills decides which of {prompts} prompts is right on which of {problems} problems,
and three problems of four hardly tell prompts apart. LEVI chooses problems greedily, by ranks, separation and
redundancy, and takes their mean. k-medoids takes the mean of the middles of clusters, weighted by the sizes of the
clusters. The third method takes random problems and a ridge regression on them."""
GOAL = """\
The goal is the order of LEVI's figure 6: its own method, then k-medoids, then the regression. It is met in {ordered}
of {all} rows. The paper's best figures are 0.70, 0.40 and 0.07 (appendix I), on prompts and problems of its own."""


METHODS = ("css_mean", "k_medoids", "random_ridge")


def answer(content: Content) -> str:
    ours, *others = ([cell[name] for cell in content["cells"]] for name in METHODS)
    rest = " and ".join(f"{min(found):.2f} to {max(found):.2f}" for found in others)
    return (
        f"on scores that are made up, rank correlation {min(ours):.2f} to {max(ours):.2f}; by two other choices {rest}"
    )


def goals(content: Content) -> Verdicts:
    return {"the order of LEVI's figure 6": content["ordered"] == len(content["cells"])}


def section(content: Content) -> str:
    """Markdown, with its heading."""
    cells = content["cells"]
    quick = "--quick " if content["settings"]["quick"] else ""
    rows = [
        (f"{cell['calibration']:.0f}", f"{cell['size']:.0f}", *(f"{cell[name]:.2f}" for name in METHODS))
        for cell in cells
    ]
    header = ("prompts scored on all", "problems chosen", "LEVI", "k-medoids", "random and ridge")
    parts = [
        "# Proxy benchmarks",
        f"    python -m bench.levi_proxy {quick}--json bench/results/levi_proxy.json",
        WHAT.format(**content["settings"]),
        table(header, rows),
        GOAL.format(ordered=content["ordered"], all=len(cells)),
    ]
    return "\n\n".join(parts)
