"""Programs beside the systems that people use: OpenEvolve, ShinkaEvolve, LEVI and SkyDiscover.

Each runs itself, by its own command and settings, on the same problems, with the same simulated coder behind the same
simulated server, for the same number of LLM calls. `make peers` installs them, each into an environment of its own.
What is measured: evaluations a minute, how much of the server is used, CPU time a call, the best score over
evaluations, what a run loses that is killed half-way and gone on with, and what comes of a program that never ends.
Everything runs in real time: leave the machine alone meanwhile, or say --not-alone.
"""
