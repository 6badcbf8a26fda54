"""The algorithms that ship, a folder each."""
