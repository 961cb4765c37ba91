"""Coverage-guided fuzzing of what strangers send: SQL, settings, and wire messages."""
