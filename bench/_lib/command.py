"""The command line that all benches have in common."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from types import ModuleType


def argument_parser(bench: ModuleType) -> ArgumentParser:
    """A parser for ``python -m bench.NAME``. Its help shows the docstring of the bench's package."""
    return ArgumentParser(
        prog=f"python -m {bench.__name__}", description=bench.__doc__, formatter_class=RawDescriptionHelpFormatter
    )
