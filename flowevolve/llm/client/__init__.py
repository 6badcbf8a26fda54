"""Making one LLM call: roles, retries, hedging, the response cache and the accounts."""
