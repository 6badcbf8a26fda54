"""The section of the page on this bench: how well small benchmarks rank prompts."""

from __future__ import annotations

from bench._lib.text import Content, table

WHAT = """\
How well a few problems rank prompts as all do: Spearman's rank correlation over prompts that no method has seen, the
mean of {splits} random splits. The scores are *made up*: {prompts} prompts on {problems} problems, right or wrong by an
item response model with {skills} skills, in which three problems of four hardly tell prompts apart. LEVI chooses
problems greedily, by ranks, separation and redundancy, and takes their mean; k-medoids takes the mean of the middles
of clusters, by the clusters' sizes; the third takes random problems, and a ridge regression on them."""
GOAL = """\
Goal: the order of LEVI's figure 6 (its own method, then k-medoids, then the regression), met in {ordered} of {all}
rows. The paper has 0.70 at best beside 0.40 and 0.07 (appendix I), on prompts and problems of its own."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    cells = content["cells"]
    quick = "--quick " if content["settings"]["quick"] else ""
    methods = ("css_mean", "k_medoids", "random_ridge")
    rows = [
        (f"{cell['calibration']:.0f}", f"{cell['size']:.0f}", *(f"{cell[name]:.2f}" for name in methods))
        for cell in cells
    ]
    header = ("prompts scored on all", "problems chosen", "LEVI", "k-medoids", "random and ridge")
    parts = [
        "## Proxy benchmarks",
        f"    python -m bench.levi_proxy {quick}--json bench/results/levi_proxy.json",
        WHAT.format(**content["settings"]),
        table(header, rows),
        GOAL.format(ordered=content["ordered"], all=len(cells)),
    ]
    return "\n\n".join(parts)
