"""Random single changes of the code, and which tests notice each of them."""
