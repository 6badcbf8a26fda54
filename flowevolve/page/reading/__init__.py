"""A run directory as rows of the tables."""
