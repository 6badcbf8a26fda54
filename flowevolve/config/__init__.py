"""The models of a run's TOML file, and what they resolve to: roles, prices, backends."""
