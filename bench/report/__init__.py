"""Writes docs/benchmarks.md and the pages in docs/benchmarks from the files in bench/results.

`pages` puts them together: the first page, one with a line for each bench, and a page for every bench with a result.
The text on a bench is in its own folder: its ``section`` makes its page, its ``answer`` its line.
"""
