"""Other tools that answer SQL with differential privacy, each in an environment of its own."""
