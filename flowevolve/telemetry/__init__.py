"""Watching a run: logs, metrics, progress and summaries, all made from its events."""
