"""Measures a server for two minutes and describes it as a profile of the simulator.

`rounds` sends requests to the server, `measuring` chooses the requests and derives figures from the answers, `fitting`
turns these into a profile, `mix` compares that profile with the server on requests that nothing was fitted to, and
`report` writes it down.
"""
