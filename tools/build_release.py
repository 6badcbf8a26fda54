"""Build the wheel and the source archive into dist/, from a copy of the tree: builds leave files behind.

``python tools/build_release.py [--url https://FORGE/OWNER/NAME]``. With the repository's address the metadata names it,
and the links and pictures of README, which a package index shows by itself, become absolute ones of this version.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TAKEN = ("flowevolve", "stages", "policies", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def absolute(readme: str, url: str, version: str) -> str:
    """The text with every relative link and picture turned into an absolute one, at the tag of this version."""

    def link(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        return f"{picture}[{text}]({url}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return _LINK.sub(link, readme)


def with_urls(pyproject: str, url: str) -> str:
    """The metadata with the repository's addresses."""
    urls = {"Homepage": url, "Documentation": f"{url}/tree/main/docs", "Changelog": f"{url}/blob/main/CHANGELOG.md"}
    table = "".join(f'{name} = "{address}"\n' for name, address in {**urls, "Issues": f"{url}/issues"}.items())
    return pyproject.replace("[project.scripts]", f"[project.urls]\n{table}\n[project.scripts]", 1)


def version_of(folder: Path) -> str:
    found = re.search(r'^__version__ = "(.+)"$', (folder / "flowevolve/__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit("error: flowevolve/__init__.py: names no __version__")
    return found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="the repository's address")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        source = Path(folder)
        for name in TAKEN:
            path = ROOT / name
            if path.is_dir():
                shutil.copytree(path, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(path, source)
        if arguments.url:
            url, readme, metadata = arguments.url.rstrip("/"), source / "README.md", source / "pyproject.toml"
            readme.write_text(absolute(readme.read_text("utf-8"), url, version_of(source)), "utf-8")
            metadata.write_text(with_urls(metadata.read_text("utf-8"), url), "utf-8")
            tomllib.loads(metadata.read_text("utf-8"))
        shutil.rmtree(arguments.out, ignore_errors=True)
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(arguments.out), folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(*sorted(path.name for path in arguments.out.iterdir()), sep="\n")


if __name__ == "__main__":
    main()
