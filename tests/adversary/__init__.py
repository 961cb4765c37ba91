"""A standing adversary: it attacks dpsql from the outside, and shares no code with its planner."""
