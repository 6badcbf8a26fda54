"""Whether there is Ray, which `make test-ray` installs in an environment of its own, and how it is to behave here."""

from __future__ import annotations

import os
from importlib.util import find_spec

WITHOUT_RAY = [] if find_spec("ray") else ["test_ray.py"]
"""What is not collected where Ray is missing."""

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # so that Ray, which reads it as it loads, stays on loopback
