"""DuckDB: the engine, and the writer of its statements."""
