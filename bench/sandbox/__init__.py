"""What a sandbox costs per program.

The bench prints how much longer a trivial program takes in the sandbox than by itself (median and 95th percentile).
With all cores busy, it prints the rate of programs that take a tenth of a second over the rate the cores could reach.
"""
