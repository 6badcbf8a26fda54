"""Real gepa, agentdescent and ours on one server: how fast each evolves the same tasks with the same client limit.

Every method runs in a process of its own against one HTTP server, which records all requests; methods come in random
order, several times. The simulated server runs faster than what it simulates, so that a bench takes minutes; all times
and rates are in the simulated server's own time. ``--server URL`` takes any OpenAI-compatible server that asks for no
key.
"""
