"""Forecasts of what a run will take, before a token is paid for: its configuration is run against a simulated server,
and the rest is extrapolated.
"""
