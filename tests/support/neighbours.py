"""Neighbouring data: what is deleted so that one unit is gone, for each world of the corpus."""

from __future__ import annotations

import re

from support.corpus import World

DIRTY = {
    "shop": "dirty",
    "trade": "trade_dirty",
    "ratings": "ratings_dirty",
    "types": "types_dirty",
    "ssb": "ssb_dirty",
}
ORDINARY = (31,)
SHOP = ("customers", "orders", "visits")


def shop_units(*units: int) -> tuple[str, ...]:
    """Deletes customers, everywhere."""
    wanted = ", ".join(map(str, units))
    return tuple(f"DELETE FROM {table} WHERE customer_id IN ({wanted})" for table in SHOP)


def trade_units(*units: tuple[str, int]) -> tuple[str, ...]:
    """Deletes customers of far.yaml, their orders, lines, returns and refunds."""
    pairs = ", ".join(f"('{region}', {number})" for region, number in units)
    theirs = f"SELECT order_id FROM orders WHERE (customer_region, customer_number) IN ({pairs})"
    return (
        f"DELETE FROM returns WHERE order_id IN ({theirs})",
        f"DELETE FROM refunds WHERE (customer_region, customer_number) IN ({pairs})",
        f"DELETE FROM lineitem WHERE order_id IN ({theirs})",
        f"DELETE FROM orders WHERE (customer_region, customer_number) IN ({pairs})",
        f"DELETE FROM customer WHERE (region, number) IN ({pairs})",
    )


def students(*units: int) -> tuple[str, ...]:
    """Deletes students of ratings.yaml, who are in no table of their own, and replies to them."""
    wanted = ", ".join(map(str, units))
    theirs = f"SELECT rating FROM ratings WHERE s IN ({wanted})"
    return (
        f"DELETE FROM replies WHERE rating IN ({theirs})",
        f"DELETE FROM ratings WHERE s IN ({wanted})",
        f"DELETE FROM logins WHERE who IN ({wanted})",
        f"DELETE FROM profiles WHERE s IN ({wanted})",
    )


def pupils(*units: tuple[str, int]) -> tuple[str, ...]:
    """Deletes pupils of ratings.yaml, whose key has two parts."""
    pairs = ", ".join(f"('{school}', {number})" for school, number in units)
    return (
        f"DELETE FROM marks WHERE (school, number) IN ({pairs})",
        f"DELETE FROM absences WHERE (place, pupil) IN ({pairs})",
    )


def buyers(*units: int) -> tuple[str, ...]:
    """Deletes buyers of types.yaml and what they bought."""
    wanted = ", ".join(map(str, units))
    return tuple(f"DELETE FROM {table} WHERE buyer IN ({wanted})" for table in ("sales", "buyers"))


def star_customers(unit: int) -> tuple[str, ...]:
    """Deletes a customer of ssb.yaml, and what he ordered."""
    return (
        f"DELETE FROM lineorder WHERE lo_custkey = {unit}",
        f"DELETE FROM customer WHERE c_custkey = {unit}",
    )


PRESENT = {
    "customers": {101, 102, 103, 104, 105, 106, 107},
    "orders": {101, 102, 103, 104, 105, 106, 107, 900},
    "visits": {101, 102, 104, 106, 901},
}
"""Which adversaries have rows where; the others change nothing there."""


def neighbours(world: World, sql: str) -> list[tuple[str, ...]]:
    """What is deleted, for each neighbour of the data."""
    if world.policy == "rows":
        one = "DELETE FROM visits WHERE rowid = (SELECT max(rowid) FROM visits WHERE {})"
        return [
            (one.format("seconds = 3600"),), (one.format("seconds < 0"),),
            (one.format("started IS NULL"),), (one.format("seconds > 9999"),),
        ]  # fmt: skip
    if world.policy == "ssb":
        return [star_customers(u) for u in (901, 902, 903, 904, 31)]
    if world.policy == "far":
        return [trade_units(u) for u in (("north", 7), ("east", 3), ("moon", 1), ("south", 20))]
    if world.policy == "types":
        return [buyers(u) for u in (901, 902, 903, 904, 905, 31)]
    if world.policy == "ratings" and re.search(r"marks|absences", sql):
        return [pupils(u) for u in (("north", 7), ("moon", 1), ("east", 30))]
    if world.policy == "ratings":
        return [students(u) for u in (901, -1, 902, 903, 60)]
    there = set().union(*(units for table, units in PRESENT.items() if table in sql))
    return [shop_units(u) for u in (*sorted(there), *ORDINARY)]


def hostile_unit(world: World) -> tuple[str, ...]:
    """Deletes one unit of the dirty data, who breaks what is declared wherever that is possible."""
    if world.policy == "ratings":
        return (*students(901), *pupils(("north", 7)))
    return neighbours(world, " ".join(PRESENT))[0]


def ordinary_unit(world: World) -> tuple[str, ...]:
    """Deletes one unit who is as declared."""
    if world.policy == "ratings":
        return (*students(60), *pupils(("east", 30)))
    found = neighbours(world, " ".join(PRESENT))
    return found[0] if world.policy == "rows" else found[-1]
