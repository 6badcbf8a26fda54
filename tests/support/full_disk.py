"""A disk without any space."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

resource = pytest.importorskip("resource")


@contextmanager
def full_disk() -> Iterator[None]:
    """Inside the block no file of this process can grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
