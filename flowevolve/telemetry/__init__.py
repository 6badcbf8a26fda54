"""Watching a run: logs, metrics, progress and summaries, made from its events, its calls and its result."""
