"""Runs that last: SIGKILLs, every boundary between events, random faults, hours on end, and what the journal costs.

The kills, the faults and the soak are real processes on a real clock, with the simulated server (profile ``fast-demo``,
world ``rules``) in a process of its own over HTTP; the boundaries and the long run are on the virtual clock. Each part
adds its figures to the result file, so that they can be measured one after the other.
"""
