"""The contracts that everything speaks of: artifacts, the pool, items, budgets, events, graphs, algorithms, tasks."""
