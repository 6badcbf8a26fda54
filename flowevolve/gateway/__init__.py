"""The gateway: several runs share one server or several replicas, and each gets its fair share."""
