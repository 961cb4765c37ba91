"""Faults planted into a copy of dpsql, for the adversary to find.

They were written without looking at the adversary, and share no code with it, with the planner, or with
the other tests. First among them is every hole that was ever found.
"""
