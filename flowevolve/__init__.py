"""flowevolve: LLM-driven evolution as a stream."""
