"""Helpers that know nothing about evolution: errors, clocks, tasks, SQLite writing, registries, plug-ins, secrets."""
