"""Drivers of systems that people would use instead of ours: each evolves one of our tasks with its own engine.

They share the task's code, `chats` for HTTP, and the form in which they report their progress (`progress`).
"""
