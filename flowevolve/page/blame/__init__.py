"""Where each sentence of a candidate came from."""
