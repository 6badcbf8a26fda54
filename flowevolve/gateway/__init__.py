"""The gateway: several runs share one server, or several replicas, each with its part of them."""
