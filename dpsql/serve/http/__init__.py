"""The service over HTTP, for programs that want answers with their cost.

This face adds no rules of its own.
"""
