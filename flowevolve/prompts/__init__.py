"""The prompts of the algorithms' agents, with fixed titles, and the strict readers of their replies."""
