"""gepa's own loops beside ours over one gepa adapter, on the simulated server, on the real clock.

All modes have the same adapter, data, prompts and client threads, which the adapter spreads its requests over: gepa
with one proposal at a time, gepa with 4x4 and with 8x8 proposals an iteration, evaluated and reflected on side by side
(``batch_evaluate``, ``reflect_many``), and ours. The server is an API whose latency is lognormal and does not depend on
load, inside this process.
"""
