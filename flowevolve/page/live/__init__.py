"""The page of runs that are watched, and its server."""
