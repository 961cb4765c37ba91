"""The PostgreSQL protocol: a table-driven machine without I/O, and asyncio code around it."""
