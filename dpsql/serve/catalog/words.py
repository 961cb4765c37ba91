"""The words of catalog queries: functions, words that are never names, and replacements."""

from __future__ import annotations

INFORMATION = "pgx_information"
"""The schema of the engine that holds the information schema."""
TEMPORARY = "pgx_temporary"
"""The schema of the engine for relations that list a session's temporary views too."""
WITH_TEMPORARY = {
    "pg_class": "pg_catalog", "pg_attribute": "pg_catalog", "pg_namespace": "pg_catalog", "pg_views": "pg_catalog",
    "tables": "information_schema", "columns": "information_schema", "views": "information_schema",
}  # fmt: skip
"""Those relations, with the schemas in which clients find them."""
OWN = ("pgf_", "pgt_", "pgx_")
"""The prefixes of names that only a rewrite writes: internal functions, schemas and tables."""
SCHEMAS = ("pg_catalog", "information_schema")
VECTORS = frozenset({"indkey", "indoption", "indclass", "indcollation", "proargtypes", "partattrs"})
REG = frozenset({"regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"})
BARE = {
    "current_user": "pgf_current_user()", "session_user": "pgx_login()",
    "user": "pgf_current_user()", "current_role": "pgf_current_user()",
    "current_schema": "pgf_current_schema()", "current_catalog": "pgf_current_database()",
    "current_date": "CAST(now() AS DATE)", "current_timestamp": "now()",
    "localtimestamp": "CAST(now() AS TIMESTAMP)",
}  # fmt: skip
NO_NAMES = frozenset({
    "in", "values", "and", "or", "not", "exists", "any", "all", "some", "array", "over", "filter",
    "within", "using", "on", "as", "case", "when", "then", "else", "from", "join", "select",
    "where", "by", "distinct", "limit", "offset", "lateral", "union", "except", "intersect",
    "having", "between", "like", "ilike", "is", "row", "with", "recursive", "materialized", "only",
    "returning", "set", "end", "cast", "both", "leading", "trailing", "interval",
})  # fmt: skip
BUILTIN = frozenset({
    "abs", "array_agg", "array_append", "array_cat", "array_position", "ascii", "avg", "bool_and",
    "bool_or", "btrim", "ceil", "ceiling", "char_length", "character_length", "chr", "coalesce",
    "concat", "concat_ws", "count", "date_part", "date_trunc", "dense_rank", "every", "exp",
    "extract", "first_value", "floor", "generate_series", "generate_subscripts", "greatest",
    "initcap", "lag", "last_value", "lead", "least", "left", "length", "ln", "log", "lower",
    "ltrim", "make_date", "max", "md5", "min", "mod", "nullif", "now", "octet_length",
    "overlay", "pi", "position", "power", "rank", "regexp_replace", "replace", "reverse",
    "right", "round", "row_number", "rtrim", "sign", "split_part", "sqrt", "starts_with",
    "string_agg", "strpos", "substr", "substring", "sum", "to_json", "translate", "trim", "trunc",
    "unnest", "upper",
})  # fmt: skip
"""The engine's own functions that catalog queries may call.

They are total, and depend on their arguments only.
"""
ELSEWHERE = {
    "clock_timestamp": "now", "statement_timestamp": "now", "transaction_timestamp": "now",
    "json_build_object": "json_object", "jsonb_build_object": "json_object",
}  # fmt: skip


MISSING = {
    "regclass": "42P01 relation", "regtype": "42704 type", "regproc": "42883 function",
    "regnamespace": "3F000 schema", "regrole": "42704 role",
}  # fmt: skip
"""The SQLSTATE, and the kind of object, in the error for a name that does not exist."""
