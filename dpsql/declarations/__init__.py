"""What a policy says of the data, and the queries that compare the data with it."""
