"""Eight families of programs that spread experts over GPUs, each with a score that no member of it can pass."""
