"""From SQL text to dpsql's own typed relations. sqlglot is used only in this folder."""
