"""What was spent, durably."""
