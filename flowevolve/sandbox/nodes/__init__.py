"""Programs on other machines: a cluster's nodes run jobs at least once, and the engine takes each outcome only once."""
