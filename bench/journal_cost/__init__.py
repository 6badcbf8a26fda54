"""What the journal costs: CPU time per LLM call, on the event loop and in the writer's thread.

A producer makes calls of realistic sizes at a steady 500 a second, each with five events; every fourth sends an item
on with its payload. It runs without a journal, with one, and with one whose every call waits until it is on disk.
"""
