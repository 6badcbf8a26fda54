"""A hook for mkdocs: adds to the site, as plain text, whatever its pages link to outside of docs/.

Pages link to examples, results and sources by their paths in the repository. Each such file is copied to
``repository/`` in the site, and the link is changed to lead there; a folder becomes a list of its files.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
SHOWN_AS_THEY_ARE = {".svg", ".png", ".json"}
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file outside of docs/ that a page links to."""
    linked = {
        target
        for page in files.documentation_pages()
        for _, link, _ in _LINK.findall(page.content_string)
        if (target := _outside(page.src_uri, link)) is not None
    }
    for target in sorted(linked):
        path = ROOT / target
        content = _listing(path) if path.is_dir() else path.read_text(encoding="utf-8")
        files.append(File.generated(config, _place(target), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make the links lead to the copies."""

    def turned(match: re.Match[str]) -> str:
        target = _outside(page.file.src_uri, match[2])
        if target is None:
            return match[0]
        return match[1] + posixpath.relpath(_place(target), posixpath.dirname(page.file.src_uri) or ".") + match[3]

    return _LINK.sub(turned, markdown)


def _outside(page: str, link: str) -> str | None:
    """The path in the repository that a link leads to, if it is outside of docs/ and exists."""
    target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return target if not target.startswith("docs/") and (ROOT / target).exists() else None


def _place(target: str) -> str:
    """Where a copy is in the site. It is text that a browser shows, not a page of the site."""
    return f"repository/{target}" + ("" if Path(target).suffix in SHOWN_AS_THEY_ARE else ".txt")


def _listing(folder: Path) -> str:
    found = (Path(at) / name for at, _, names in os.walk(folder) for name in names if "__pycache__" not in at)
    return "\n".join(sorted(str(path.relative_to(ROOT)) for path in found)) + "\n"
