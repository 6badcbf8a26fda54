"""docs/benchmarks.md, made from the files in bench/results.

`page` puts the page together from the ``section`` of each bench, which stands beside the bench it reports.
"""
