"""Our own vLLM servers: how they are started, supervised and stopped."""
