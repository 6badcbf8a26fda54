"""The page of a run as one file."""
