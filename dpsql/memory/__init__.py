"""What one process may keep in memory for its clients: counted in bytes, in one pool."""
