"""Drivers: the code that calls a program again and again in the sandbox, one module for each kind of problem.

The source of a driver is appended to the program's, and outside of the sandbox the module itself is used to check the
result. Drivers therefore have no ``__future__`` imports, and their names start with ``harness_`` so that they don't
collide with a program's. (Models see these names in the tracebacks of failed programs.) The driver that runs scripts,
`streams`, is given the program as a text instead.
"""
