"""The contracts that everything builds on: artifacts, the pool, items, budgets, events, graphs, algorithms, tasks."""
