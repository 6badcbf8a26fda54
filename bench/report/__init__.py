"""docs/benchmarks.md and the pages in docs/benchmarks, made from the files in bench/results.

`pages` puts them together: the first has a line for each bench, and every bench with a result has a page of its own.
What is said of a bench stands beside it: its ``section`` is the page, its ``answer`` the line.
"""
