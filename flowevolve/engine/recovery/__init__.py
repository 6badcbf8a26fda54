"""Going on with a run that was interrupted: its state, rebuilt from the event log."""
