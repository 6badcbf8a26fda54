"""Programs that others have published with their scores, run through our evaluators with the papers' limits.

The programs come from a file of rows with `problem`, `program`, `score` and `metrics`; nothing of it is in the
repository. They are run in the sandbox only. What a program needs to be run as one of ours (another function's name, a
class that its own evaluator brings) is added to it.
"""
