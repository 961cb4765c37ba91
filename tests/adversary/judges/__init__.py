"""What must not differ between neighbours, and what must not be said at all: one judge a file."""
