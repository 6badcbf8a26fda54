"""LEVI and CodeEvolve beside best-of-N and (1+λ) at equal numbers of evaluations, on the virtual clock.

The coder is simulated (world ``code``: random changes of real programs); the programs are real, and are really run.
Every method gets the same problems, seeds and budget, as a stream and in lockstep.
"""
