"""Resuming an interrupted run: its state is rebuilt from the event log."""
