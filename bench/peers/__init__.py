"""Drivers of the systems that others would use instead of ours: each evolves one of our tasks through its own engine.

They share the task's code, `bench.peers.chats` for HTTP, and the words they report in (`bench.peers.progress`).
"""
