"""Maps types between PostgreSQL's catalog and the engine that holds it.

The engine has no names for PostgreSQL's types. So each of them is stored as a physical type that no
other one uses: an oid as UINTEGER, a vector of oids as UBIGINT[], a function as DECIMAL(10,0), a
"char" and a name as enumerations (of all names that occur, in order). The engine's type of a result
then determines its PostgreSQL type.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpsql.policy.types import digits_of
from dpsql.serve.pgwire import oids

CHAR_TYPE, NAME_TYPE, PROCEDURE_TYPE = "pg_char", "pg_name", "DECIMAL(10,0)"
UNBOUNDED = "DECIMAL(38,10)"
"""The engine's type for a numeric of any precision."""

STORED: Mapping[str, str] = MappingProxyType({
    "oid": "UINTEGER", "regproc": PROCEDURE_TYPE, "name": NAME_TYPE, "regclass": "UINTEGER", "regtype": "UINTEGER",
    "xid": "UINTEGER", "cid": "UINTEGER", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT",
    "bool": "BOOLEAN", "float4": "FLOAT", "float8": "DOUBLE", "numeric": "DOUBLE",
    "char": CHAR_TYPE, "int2vector": "USMALLINT[]", "oidvector": "UBIGINT[]",
    "_oid": "UINTEGER[]", "_int2": "SMALLINT[]", "_int4": "INTEGER[]", "_float4": "FLOAT[]",
    "_text": "VARCHAR[]", "_char": "VARCHAR[]", "_name": "VARCHAR[]", "_aclitem": "VARCHAR[]",
    "_regtype": "UINTEGER[]", "timestamptz": "TIMESTAMPTZ",
})  # fmt: skip
"""The engine's types for columns of the catalog. Columns of all other types are text."""

PROCEDURES = frozenset({
    "typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze",
    "typsubscript", "amhandler", "aggfnoid", "aggtransfn", "aggfinalfn", "oprcode", "oprrest",
    "oprjoin", "prosupport", "rngcanonical", "rngsubdiff", "conproc", "amproc",
})  # fmt: skip
"""Columns that refer to a function. A cast to text gives the name of the function."""

CAST: Mapping[str, str] = MappingProxyType({
    "oid": "UINTEGER", "xid": "UINTEGER", "cid": "UINTEGER", "name": "VARCHAR", "text": "VARCHAR",
    "varchar": "VARCHAR", "char": "VARCHAR", "bpchar": "VARCHAR", "character": "VARCHAR",
    "int2": "SMALLINT", "smallint": "SMALLINT", "int4": "INTEGER", "int": "INTEGER",
    "integer": "INTEGER", "int8": "BIGINT", "bigint": "BIGINT", "bool": "BOOLEAN",
    "boolean": "BOOLEAN", "float4": "FLOAT", "real": "FLOAT", "float8": "DOUBLE",
    "double": "DOUBLE", "numeric": UNBOUNDED, "decimal": UNBOUNDED,
    "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ",
    "interval": "INTERVAL", "uuid": "UUID", "json": "VARCHAR", "jsonb": "VARCHAR",
    "int2vector": "USMALLINT[]", "oidvector": "UBIGINT[]", "anyarray": "VARCHAR[]",
    "aclitem": "VARCHAR", "pg_node_tree": "VARCHAR", "inet": "VARCHAR", "bytea": "BLOB",
    "sql_identifier": "VARCHAR", "character_data": "VARCHAR", "yes_or_no": "VARCHAR",
    "cardinal_number": "INTEGER", "regclass": "UINTEGER", "regtype": "UINTEGER",
    "regproc": "UINTEGER", "regnamespace": "UINTEGER", "regrole": "UINTEGER", "unknown": "VARCHAR",
})  # fmt: skip
"""The engine's types for casts in catalog queries."""

_SEEN: Mapping[str, int] = MappingProxyType({
    "BOOLEAN": oids.BOOL, "TINYINT": oids.INT2, "UTINYINT": oids.INT2, "SMALLINT": oids.INT2,
    "USMALLINT": oids.INT2, "INTEGER": oids.INT4, "BIGINT": oids.INT8, "UINTEGER": oids.OID,
    "UBIGINT": oids.OID, "HUGEINT": oids.NUMERIC, "FLOAT": oids.FLOAT4, "DOUBLE": oids.FLOAT8,
    "VARCHAR": oids.TEXT, "DATE": oids.DATE, "TIME": oids.TIME, "TIMESTAMP": oids.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": oids.TIMESTAMPTZ, "INTERVAL": oids.INTERVAL, "UUID": oids.UUID,
    "BLOB": oids.BYTEA, "JSON": oids.JSON, "USMALLINT[]": oids.INT2VECTOR,
    "UBIGINT[]": oids.OIDVECTOR, "UINTEGER[]": 1028, "SMALLINT[]": 1005, "INTEGER[]": 1007,
    "BIGINT[]": 1016, "VARCHAR[]": 1009, "FLOAT[]": 1021, "DOUBLE[]": 1022, "BOOLEAN[]": 1000,
})  # fmt: skip


_CHARS = "ENUM('', ' ', '!',"
"""The beginning of the enumeration of single characters, as the engine writes it."""


def oid_of(engine_type: str) -> int:
    """The oid of the PostgreSQL type for a result of this engine type.

    >>> oid_of("UINTEGER"), oid_of("DECIMAL(3,1)"), oid_of("STRUCT(x INTEGER)"), oid_of("DATE[]")
    (26, 1700, 25, 1182)
    """
    if engine_type.startswith("ENUM("):
        element, array = (oids.CHAR, 1002) if engine_type.startswith(_CHARS) else (oids.NAME, 1003)
        return array if engine_type.endswith("[]") else element
    if engine_type == PROCEDURE_TYPE:
        return oids.REGPROC
    if engine_type.startswith("DECIMAL"):
        return 1231 if engine_type.endswith("[]") else oids.NUMERIC
    if engine_type not in _SEEN and engine_type.endswith("[]"):
        return oids.ARRAYS.get(oid_of(engine_type[:-2]), oids.ARRAYS[oids.TEXT])
    return _SEEN.get(engine_type, oids.TEXT)


_SHAPES: Mapping[str, str] = MappingProxyType({
    "smallint": "SMALLINT", "integer": "INTEGER", "real": "FLOAT", "uuid": "UUID",
    "boolean": "BOOLEAN", "bigint": "BIGINT", "double": "DOUBLE", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ",
})  # fmt: skip
"""The engine's types for columns of the policy in tables without rows. All others are text."""


def shape_of(name: str) -> str:
    """The engine's type for a policy column of the type or kind of this name.

    >>> shape_of("decimal(12, 2)"), shape_of("bigint[]"), shape_of("text")
    ('DECIMAL(38,10)', 'BIGINT[]', 'VARCHAR')
    """
    element = name.removesuffix("[]")
    stored = UNBOUNDED if digits_of(element) else _SHAPES.get(element, "VARCHAR")
    return stored + name[len(element) :]
