"""What the parts of CSE and the agents of ContextEvolve are worth: each whole beside itself without one of them.

This follows CSE's table 2 and figure 4 and ContextEvolve's figure 2 (c). Both sides have the same seeds and the same
number of evaluations, in the published form, one step at a time. The coder is simulated (world ``code``); the programs
are real, and run in the sandbox. CSE's global memory is measured by `bench.task_sequence`.
"""
