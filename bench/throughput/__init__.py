"""gepa, dspy.GEPA, agentdescent, TurboGEPA and ours on one server: how soon each has the same score on the same tasks.

Every method runs in a process of its own against one HTTP server, which records all requests; methods come in random
order, several times. The simulated server runs faster than what it simulates, so that a bench takes minutes; all times
and rates are in the simulated server's own time. ``--server URL`` takes any OpenAI-compatible server that asks for no
key.
"""
