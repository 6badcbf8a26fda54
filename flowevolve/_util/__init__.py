"""Helpers that know nothing of evolution: errors, clocks, tasks, SQLite writing, registries, plug-ins, secrets."""
