"""Measurements, their bounds, their price."""
