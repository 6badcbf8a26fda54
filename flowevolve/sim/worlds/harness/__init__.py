"""The world `harness`: a coder that writes harnesses, and a model that labels texts."""
