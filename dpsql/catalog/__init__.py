"""The aggregates and scalar functions that dpsql computes: one record for each.

This is not one of the catalogs in which clients look up tables: ``serve.catalog`` is PostgreSQL's
``pg_catalog``, and ``engines.catalog`` is the database that answers questions about it.
"""
