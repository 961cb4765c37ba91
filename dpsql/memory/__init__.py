"""The memory that one process uses for its clients, counted in bytes in one pool."""
