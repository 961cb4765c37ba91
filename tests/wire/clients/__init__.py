"""Clients and what they do, one module or program for each."""
