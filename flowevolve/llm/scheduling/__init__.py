"""When a request may be sent: the scheduler, its queue, admission policies and rate limits."""
