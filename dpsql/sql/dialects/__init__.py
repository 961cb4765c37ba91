"""Input dialects: what their SQL says, said as PostgreSQL says it. See ``translate``."""
