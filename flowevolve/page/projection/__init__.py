"""From events and calls of a journal to rows of the tables."""
