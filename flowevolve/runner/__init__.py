"""From a checked configuration to a result: assembling, running, resuming and replaying."""
