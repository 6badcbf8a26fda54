"""Drop-in replacements that run programs written for other projects as a stream."""
