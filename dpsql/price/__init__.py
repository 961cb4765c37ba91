"""Bounding and noise chosen by predicted error, within what a budget allows."""
