"""docs/benchmarks.md, made from the files in bench/results; `python -m bench.report` writes it."""
