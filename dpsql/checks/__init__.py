"""The rules a bound query must keep, one per file."""
