"""What an operator is told: events in a log, and numbers to watch."""
