"""The cut at the frontier: measurements below, the analyst's own SQL above."""
