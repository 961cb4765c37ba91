"""Endpoints that other programs connect to. They reach data through ``dpsql.service`` only."""
