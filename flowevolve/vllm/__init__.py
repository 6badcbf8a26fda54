"""A local vLLM server: how it is started, watched and ended."""
