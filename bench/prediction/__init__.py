"""The simulator against reality: a real server is measured, runs on it are predicted, and then made.

Nothing is fitted to the runs that are compared. The server's profile comes from ``flowevolve calibrate``. What its
model answers comes from a run of its own, whose replies are drawn again; neither model nor scores are simulated.
"""
