"""What the machinery costs: CPU time and calls a second, memory in flight, and how costs grow with a run's length.

The server answers at once and runs in a process of its own; CPU time is that of the calling process, all its threads
together. So what is measured is the client, the engine and the libraries under them, on one core.
"""
