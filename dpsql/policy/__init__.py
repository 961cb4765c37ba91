"""The data owner's word: which tables, who is protected, bounds, budgets."""
