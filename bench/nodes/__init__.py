"""Evaluations a second where programs run on the nodes of a cluster, beside the pool of one machine on the same cores.

The cluster is on this machine: a Ray head without cores and two raylets, and two jobs of submitit's local executor,
each with one slot, beside a pool with two. It needs the extras ``ray`` and ``slurm``.
"""
