"""What dpsql says when it does not answer: places in SQL, codes, refusals and their rendering."""
