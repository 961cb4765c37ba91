"""The PostgreSQL protocol: a machine of tables without I/O, and a thin asyncio shell around it."""
