"""Ways to dpsql, each with the same transcripts."""
