"""The shipped tasks, and what helps to write others: loaders, scorers, verifiers."""
