"""The attacks: one function each, imported here so that they are registered."""

from benchmarks.attacks.scenarios import (
    connections,
    failed_log_ins,
    http_face,
    long_texts,
    server_memory,
    statements,
    values,
)

__all__ = [
    "connections",
    "failed_log_ins",
    "http_face",
    "long_texts",
    "server_memory",
    "statements",
    "values",
]
