"""What dpsql can compute: one record for each aggregate and each scalar function.

Not to be confused with the catalogs that clients read about tables: ``serve.catalog`` is PostgreSQL's
``pg_catalog``, and ``engines.catalog`` the database that answers questions about it.
"""
