"""The engine: an algorithm's graph run as a stream or in lockstep, from start to end."""
