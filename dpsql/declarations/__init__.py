"""The declarations of a policy about the data, and the queries that compare the data with them."""
