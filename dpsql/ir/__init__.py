"""What everything below the frontier is made of: expressions, relations and statements, as frozen values."""
