"""Methods that evolve the same tasks on one server which records every request: gepa, agentdescent and our own engine.

`bench.throughput` and `bench.gpu` both measure them: the tasks are in `workloads`, our own settings in `presets`, a
method runs in a process of its own (`process`) against the recording server, `runs` starts it and ends it, `figures`
says what a run comes to, and `ratios` compares methods.
"""
