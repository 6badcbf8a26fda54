"""Memory that outlasts a run: experience with other tasks, found again by its meaning."""
