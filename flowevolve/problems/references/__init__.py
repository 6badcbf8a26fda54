"""Fast programs for the efficiency problems, one module each. They give right answers, and others are compared with
them.

Each has ``solve(text)``, which takes a test and returns the answer, and runs as a script.
"""
