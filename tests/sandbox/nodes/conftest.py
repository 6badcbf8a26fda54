"""The tests on a real cluster need Ray, which `make test-ray` installs in an environment of its own."""

from __future__ import annotations

import os
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("ray") else ["test_ray.py"]
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # so that Ray, which reads it as it loads, stays on loopback
