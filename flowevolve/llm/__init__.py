"""Everything between a stage's call to a model and the wire."""
