"""Input dialects, and their translation to PostgreSQL's dialect. See ``translate``."""
