"""The tests on a real cluster need Ray, which `make test-ray` installs in an environment of its own."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("ray") else ["test_ray.py"]
