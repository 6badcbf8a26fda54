"""Tokens that a step of ContextEvolve takes beside the form that shows programs as they are (the paper's figure 2b).

Runs are on the virtual clock with the simulated coder (world ``code``); programs are real, and run in the sandbox. All
that differs is the length of the programs: they carry along text that does nothing (`long_programs`).
"""
