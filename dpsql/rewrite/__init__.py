"""Statements of measurements, and what makes them cheaper without changing a row: ``rules.RULES``."""
