"""The world `rules`: models that obey the rules which a prompt states."""
