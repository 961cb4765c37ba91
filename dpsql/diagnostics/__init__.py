"""Refusals and other errors: their codes, their places in the SQL text, and their rendering."""
