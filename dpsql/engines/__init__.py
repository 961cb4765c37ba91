"""The engines of the databases that hold the data. Only they read values without noise."""
