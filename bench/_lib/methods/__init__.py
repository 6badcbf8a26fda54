"""Methods that evolve the same tasks on one server which records every request: gepa, agentdescent and our own engine.

`bench.throughput` and `bench.gpu` both measure them. The tasks are in `workloads` and our own settings in `presets`. A
method runs in a process of its own (`process`) against the recording server; `runs` starts and ends it, `figures`
computes the figures of a run, and `ratios` compares methods.
"""
