"""Benches: every figure is a ratio measured side by side in one run. Each runs as ``python -m bench.NAME``."""
