"""The code that README and docs show: fenced blocks, with what is said of each in a comment above it.

A comment ``<!-- not run: why -->`` on the line above a block says that its code is read and compiled, or its commands
parsed, and nothing more. A block with ``title="NAME"`` is a file of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    {ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")}
    - {ROOT / "docs" / "benchmarks.md", *(ROOT / "docs" / "benchmarks").rglob("*.md")}
)
"""Without the pages of benchmarks, which record commands as they were given."""
LANGUAGES = {"bash", "json", "python", "text", "toml"}

_BLOCK = re.compile(
    r"(?:^ *<!-- (?P<why>not run: .+?) -->\n)?^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block. ``line`` is where its code begins on the page."""

    page: str
    line: int
    language: str
    title: str | None
    not_run: str | None
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [_block(page, text, match) for match in _BLOCK.finditer(text)]


def _block(page: Path, text: str, match: re.Match[str]) -> Block:
    language, _, rest = match["info"].partition(" ")
    title = _TITLE.search(rest)
    return Block(
        str(page.relative_to(ROOT)),
        text.count("\n", 0, match.start("code")) + 1,
        language,
        None if title is None else title[1],
        match["why"],
        re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE),
    )


def without_blocks(page: Path) -> str:
    """The text between the blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))
