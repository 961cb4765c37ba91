"""From SQL text to dpsql's own typed relations; sqlglot never leaves this folder."""
