"""The values that queries below the frontier are made of: expressions, relations and statements."""
