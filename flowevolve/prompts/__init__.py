"""The prompts of the algorithms' agents, which have fixed titles, and the strict readers of their replies."""
