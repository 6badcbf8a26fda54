"""CSE on related tasks one after the other, with and without a global memory that passes from each to the next.

The tasks are our efficiency problems, in a fixed order; the coder is simulated (world ``code``). The programs are real
and measured, one at a time: nothing else should use the machine meanwhile.
"""
