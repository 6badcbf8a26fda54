"""Memory that outlasts a run: experience with other tasks, searched by meaning."""
