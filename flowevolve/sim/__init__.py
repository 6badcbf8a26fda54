"""A simulated LLM server: service models, profiles, worlds and faults."""
