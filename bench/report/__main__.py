"""The command ``python -m bench.report``."""

from __future__ import annotations

from bench.report.page import PAGE, page


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
