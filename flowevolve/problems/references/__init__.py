"""Quick programs for the problems of efficiency, one module each: ratios are to them, and right answers come from them.

Each has ``solve(text)``, which takes a test and returns the answer, and runs as a script.
"""
