"""PostgreSQL's catalog as clients see it. It is made from the policy, never from the data."""
