"""What each SQL aggregate is made of: primitive statistics and how to finish them."""
