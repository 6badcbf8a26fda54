"""These tests need dspy, which `make test-dspy` installs in an environment of its own; without it none is collected."""

from __future__ import annotations

import os
from importlib.util import find_spec
from tempfile import gettempdir

collect_ignore_glob = [] if find_spec("dspy") else ["test_*.py"]
os.environ["DSPY_CACHEDIR"] = os.path.join(gettempdir(), "flowevolve-dspy-cache")  # noqa: PTH118  # read at import
