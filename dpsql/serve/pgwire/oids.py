"""PostgreSQL's type numbers, and their mapping from dpsql's kinds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpsql.policy.types import INSTANT, Kind, digits_of
from dpsql.serve.pgwire.replies import WireColumn

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT2VECTOR, INT4 = 16, 17, 18, 19, 20, 21, 22, 23
REGCLASS, REGTYPE, VOID, REGNAMESPACE = 2205, 2206, 2278, 4089
REGPROC, TEXT, OID, OIDVECTOR, JSON, JSONB = 24, 25, 26, 30, 114, 3802
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 700, 701, 705, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, NUMERIC, UUID = (
    1082,
    1083,
    1114,
    1184,
    1186,
    1700,
    2950,
)

NUMBERED = (REGPROC, REGCLASS, REGTYPE, REGNAMESPACE)
"""Types that are written as a name in text and as a number in binary."""

SIZES: Mapping[int, int] = MappingProxyType({
    BOOL: 1, CHAR: 1, NAME: 64, INT8: 8, INT2: 2, INT4: 4, REGPROC: 4, OID: 4, FLOAT4: 4,
    FLOAT8: 8, DATE: 4, TIME: 8, TIMESTAMP: 8, TIMESTAMPTZ: 8, INTERVAL: 16, UUID: 16,
    REGCLASS: 4, REGTYPE: 4, REGNAMESPACE: 4, VOID: 4,
})  # fmt: skip
"""The bytes of a value. Types that are not listed have values of varying length."""

ELEMENTS: Mapping[int, int] = MappingProxyType({
    1000: BOOL, 1002: CHAR, 1003: NAME, 1005: INT2, 1007: INT4, 1009: TEXT, 1014: BPCHAR,
    1015: VARCHAR, 1016: INT8, 1021: FLOAT4, 1022: FLOAT8, 1028: OID, 1115: TIMESTAMP,
    1182: DATE, 1185: TIMESTAMPTZ, 1231: NUMERIC, 2951: UUID, INT2VECTOR: INT2, OIDVECTOR: OID,
})  # fmt: skip
"""The element type of each array type."""

ARRAYS: Mapping[int, int] = MappingProxyType(
    {element: array for array, element in sorted(ELEMENTS.items(), reverse=True) if array >= 1000}
)

_KINDS: Mapping[Kind, int] = MappingProxyType({
    Kind.BOOLEAN: BOOL,
    Kind.INTEGER: INT8,
    Kind.DOUBLE: FLOAT8,
    Kind.TEXT: TEXT,
    Kind.DATE: DATE,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.INTERVAL: INTERVAL,
    Kind.NULL: TEXT,
})  # fmt: skip
KINDS: Mapping[Kind, int] = MappingProxyType(
    {
        **_KINDS,
        **{kind: ARRAYS[_KINDS[kind.element]] for kind in Kind if kind.element is not None},
    }
)

NAMES: Mapping[str, int] = MappingProxyType({
    "bool": BOOL, "boolean": BOOL, "bigint": INT8, "int8": INT8, "smallint": INT2, "int2": INT2,
    "int": INT4, "integer": INT4, "int4": INT4, "text": TEXT, "varchar": VARCHAR, "name": NAME,
    "character": BPCHAR, "char": BPCHAR, "bpchar": BPCHAR, "oid": OID, "real": FLOAT4,
    "float4": FLOAT4, "float8": FLOAT8, "double": FLOAT8, "numeric": NUMERIC, "decimal": NUMERIC,
    "date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "time": TIME, "uuid": UUID,
    "regclass": TEXT, "regtype": TEXT, "interval": INTERVAL, "json": JSON,
})  # fmt: skip
"""The type names of SQL that parameters and PREPARE use."""


_NARROW: Mapping[str, int] = MappingProxyType({
    "smallint": INT2, "integer": INT4, "real": FLOAT4, "uuid": UUID, INSTANT: TIMESTAMPTZ,
})  # fmt: skip


def of_type(name: str, kind: Kind, type_name: str) -> WireColumn:
    """The description of a column of a kind, or of a declared type that is more precise.

    Answers and the catalog use the same description.

    >>> of_type("price", Kind.DOUBLE, "decimal(12, 2)")
    WireColumn(name='price', oid=1700, size=-1, modifier=786438)
    """
    digits = digits_of(type_name)
    if digits is not None:
        return WireColumn(name, NUMERIC, -1, (digits[0] << 16 | digits[1]) + 4)
    return column(name, _NARROW.get(type_name, KINDS[kind]))


def column(name: str, oid: int) -> WireColumn:
    """The description of a column of this type."""
    return WireColumn(name, oid, SIZES.get(oid, -1))
