"""The command ``python -m bench.report``."""

from __future__ import annotations

from bench._lib.paths import ROOT
from bench.report.page import pages


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
