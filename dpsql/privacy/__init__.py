"""Noise, sensitivity and accounting: every function here that carries a claim states it."""
