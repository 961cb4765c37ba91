"""How statements bound what one unit adds: one strategy a file.

A strategy makes of the rows of a measurement the query of its exact integers. What it guarantees is
the sensitivity that ``bound.bounding`` states for it.
"""
