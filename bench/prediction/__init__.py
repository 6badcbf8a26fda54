"""The simulator against reality: a real server is measured, runs on it are predicted, and then made.

Nothing is fitted to the runs that are compared. The server's profile comes from ``flowevolve calibrate``, and how long
its model's answers are from runs of their own. What an answer says is the simulated world's in both, so that the same
edits are good in a run and in its prediction: what is compared is how long everything takes.
"""
