"""The tests of the connection to a cluster need Ray."""

from __future__ import annotations

from tests.support.with_ray import WITHOUT_RAY

collect_ignore_glob = WITHOUT_RAY
