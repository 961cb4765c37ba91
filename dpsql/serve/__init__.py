"""Network endpoints for other programs. They reach data through ``dpsql.service`` only."""
