"""Deterministic simulation: whole runs drawn from seeds, in which everything goes wrong, with every invariant checked.

From its seed a case draws a configuration, an algorithm, policies, widths and budgets; faults of the server, of the
evaluation and of the disk; and what is done to the run: pauses, candidates from outside, vetoes and other acts, workers
taken away, stops, cancellations and kills, each followed by a resume, several in a row. All of it goes on the virtual
clock, twice, and both times every event has to be the same. What must be true at every event is in `books`, what must
be true when a run has ended in `endings`. A seed that fails is shrunk to the smallest case that still fails in the same
way.
"""
