"""The policy of the data owner: the tables, the protected units, bounds and budgets."""
