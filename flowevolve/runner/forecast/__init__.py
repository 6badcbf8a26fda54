"""What a run will take, before a token is paid: its configuration is run against a simulated server, and the rest
extrapolated.
"""
