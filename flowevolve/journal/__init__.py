"""What a run leaves on disk, written and read: the journal, the run directory, exports."""
