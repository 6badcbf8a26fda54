"""All algorithms at equal tokens on the problems they are made for, as streams and in lockstep.

A run ends when the replies that have come in took as many tokens as its group allows each run; calls that are under way
at that moment are dropped. By default models are simulated and time is virtual; programs and harnesses are real, and
run in the sandbox. With ``--server`` a few searches write programs with a real model, for so many minutes each.
"""
