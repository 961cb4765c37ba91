"""A public table whose keys stand close together, and columns of private tables that hold such keys.

Both ends may be stored in types of their own, and a policy may call whole numbers doubles. Then several
keys may be read as one.
"""

from __future__ import annotations

from tests.adversary.maker import Maker, Named
from tests.adversary.model import Row
from tests.adversary.types import MOMENTS, WHOLES, Family, Keys, Kind

TABLE = "rates"
MANY = 6
_DOUBLE = Keys("DOUBLE", "double", lambda n: f"CAST({WHOLES[0].value(n)} AS DOUBLE)")


def refer(maker: Maker) -> Keys | None:
    """Choose the types of both ends, for private tables that are made from now on; what the public one has."""
    dice = maker.more
    if maker.theme != "rates":
        return None
    moments = dice.chance(15)
    family: Family = "day" if moments else "number"
    ends = [dice.one(MOMENTS[:4] if moments else (WHOLES[0], *WHOLES)) for _ in range(2)]
    if moments or dice.chance(20):
        called = ends[0].policy if moments else "bigint"
    else:
        called = "double"
        ends = [dice.one(WHOLES[:3]), dice.one((ends[1], _DOUBLE))]
    public, private = (Keys(end.sql, called, end.value) for end in ends)
    values = tuple(private.value(number) for number in range(MANY))
    kind = Kind(private.sql, called, family, values, values[:2])
    maker.refers = Named("r", kind)
    return public


def publish(maker: Maker, keys: Keys) -> None:
    """Make the public table, all of whose keys are there, or only those that no other one may meet."""
    dice = maker.more
    numbers = range(0, MANY, dice.one((1, 1, 1, 1, 2)))
    unique = dice.one(("", " PRIMARY KEY", " UNIQUE"))
    maker.ddl.append(f"CREATE TABLE {TABLE} (k {keys.sql}{unique}, name VARCHAR, size INTEGER)")
    maker.policy.append(
        f"  {TABLE}:\n    public: true\n    key: k\n    columns:\n"
        f'      k: {{type: "{keys.policy}"}}\n      name: {{type: text}}\n      size: {{type: integer, range: [0, 5]}}\n'
    )
    maker.rows[TABLE] = [Row(TABLE, (keys.value(n), f"'{'xyz'[n % 3]}'", str(n))) for n in numbers]
