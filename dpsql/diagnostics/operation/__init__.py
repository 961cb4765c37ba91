"""Information for operators: events in a log, and metrics."""
