"""Statements of measurements, and the rules that make them cheaper (``rules.RULES``)."""
