"""The three figures of the README, made from the files in bench/results.

``python -m bench.report.readme`` writes them there.
"""

from __future__ import annotations

from itertools import groupby

from bench._lib.paths import ROOT
from bench._lib.stats import interval
from bench._lib.text import Content, table
from bench.report.results import read
from bench.throughput.goals import places, score_name
from bench.throughput.rows import BASE, time_to_score

README = ROOT / "README.md"
BEGIN, END = "<!-- figures: python -m bench.report.readme -->\n", "\n<!-- end of figures -->"


def figures() -> str:
    """The table, in Markdown."""
    quality, equal_calls, throughput = (_results(name) for name in ("quality", "equal_calls", "throughput"))
    rows = [
        (
            "Time until the stream has the final held-out score of synchronous GEPA (median)",
            f"{quality['headline']['time_median']:.2f} of GEPA's time",
            *_origin("quality", quality),
        ),
        (
            f"Held-out score less gepa's, with the same {equal_calls['settings']['calls']} metric calls",
            _lead(equal_calls),
            *_origin("equal_calls", equal_calls),
        ),
        (
            f"Time until it has gepa's own {_score(throughput)} after {_minutes(throughput)} minutes (median)",
            _soon(throughput),
            *_origin("throughput", throughput),
        ),
    ]
    return table(("", "measured", "command", "commit"), rows)


def _results(name: str) -> Content:
    content = read(name)
    if content is None:
        raise SystemExit(f"bench/results/{name}.json is missing: python -m bench.{name}")
    return content


def _origin(name: str, content: Content) -> tuple[str, str]:
    return f"`python -m bench.{name}`", str(content["commit"])


def _lead(content: Content) -> str:
    groups = [
        [pair["ours"]["score"] - pair["gepa"]["score"] for pair in pairs]
        for _, pairs in groupby(content["pairs"], key=lambda pair: pair["world"])
    ]
    lead = interval(groups)
    return f"{lead.value:+.3f} ({lead.low:+.3f} to {lead.high:+.3f})"


def _minutes(content: Content) -> str:
    return f"{content['settings']['minutes']:g}"


def _score(content: Content) -> str:
    return score_name(places(content)["vllm"])


def _soon(content: Content) -> str:
    timed = {name: time_to_score(rows, "stream", [BASE]) for name, rows in places(content).items()}
    gpu, api = (timed[name].median for name in ("vllm", "api"))
    return f"{gpu:.2f} of gepa's time on a simulated GPU, {api:.2f} on a simulated API"


def written(text: str) -> str:
    """The text of the README with the table in its place."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + figures() + END + rest.split(END.strip(), 1)[1]


def main() -> None:
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
