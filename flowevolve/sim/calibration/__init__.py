"""Measures a server for two minutes and describes it as a profile of the simulator.

`rounds` asks the server, `measuring` says what is asked and reads the figures off, `fitting` makes a profile of them,
`mix` compares that profile with the server on requests that nothing was fitted to, and `report` writes it down.
"""
