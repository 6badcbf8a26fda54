"""Several runs, one server: what each gets of it behind a gateway and without one, and what all get together.

Simulated, on the virtual clock.
"""
