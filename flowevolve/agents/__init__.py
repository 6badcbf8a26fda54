"""What agents are asked, and how their replies are read: prompts with fixed titles, and strict readers."""
