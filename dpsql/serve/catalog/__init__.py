"""PostgreSQL's catalog as a client sees it: made from the policy, never from the data."""
