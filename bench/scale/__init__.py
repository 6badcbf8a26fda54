"""How far one core process goes: many replicas of a server, many calls open, many candidates, and where the limit is.

Replicas and open calls are simulated, on the virtual clock; what calls and candidates cost in CPU time and memory is
measured in processes of its own.
"""
