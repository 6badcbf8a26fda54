"""Which algorithms leave the family that they begin in, and which of their parts it takes: the world `families`.

Best-of-N and (1+λ), which can't, and LEVI, CodeEvolve, CSE and ContextEvolve, each whole and without each of its parts,
with the same seeds and the same number of evaluations, in lockstep. All of it is simulated: a landscape built so that
structure matters, and how often a simulated model takes the way out was chosen by us.
"""
