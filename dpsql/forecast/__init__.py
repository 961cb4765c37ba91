"""What answers will be worth under a policy: predicted noise and, on request, exact figures of the data."""
