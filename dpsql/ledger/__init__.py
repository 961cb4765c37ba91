"""The ledger: a durable record of what was spent."""
