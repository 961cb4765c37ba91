"""Every code of a refusal or an error. A code is never reused and never changes its meaning."""

from __future__ import annotations

from dataclasses import dataclass

SYNTAX, UNDEFINED_TABLE, UNDEFINED_COLUMN = "42601", "42P01", "42703"
UNDEFINED_FUNCTION, GROUPING = "42883", "42803"
DATATYPE, UNSUPPORTED, AMBIGUOUS = "42804", "0A000", "42702"
PARAMETER, BUDGET, INTERNAL = "22023", "53400", "XX000"
CANCELED, LIMIT = "57014", "54000"


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of refusal: its number, the SQLSTATE that drivers see, and a description."""

    number: str
    sqlstate: str
    about: str


_ALL = (
    # DP1xx: the shape of the SQL
    Code("DP100", UNSUPPORTED, "a construct outside the language dpsql answers"),
    Code("DP101", UNSUPPORTED, "rows of a private table, not aggregates over them"),
    Code("DP102", SYNTAX, "text that does not parse"),
    Code("DP103", SYNTAX, "not exactly one statement"),
    Code("DP104", UNDEFINED_TABLE, "a table the policy does not list"),
    Code("DP105", UNDEFINED_COLUMN, "a column the policy does not list"),
    Code("DP106", AMBIGUOUS, "a name that more than one column has"),
    Code("DP107", UNDEFINED_FUNCTION, "a function that dpsql does not answer"),
    Code("DP108", UNSUPPORTED, "LIMIT, ORDER BY or DISTINCT ON over private rows"),
    Code("DP109", UNSUPPORTED, "a window that mixes units"),
    Code("DP110", UNSUPPORTED, "an aggregate that has no private form"),
    Code("DP111", GROUPING, "a column that is neither grouped nor aggregated"),
    Code("DP112", UNSUPPORTED, "a subquery that would show one unit's rows"),
    Code("DP113", SYNTAX, "parameters that do not fit the statement"),
    Code("DP114", UNSUPPORTED, "a pattern or argument that must be a literal"),
    Code("DP115", UNSUPPORTED, "a statement too large or too deep"),
    Code("DP116", LIMIT, "a text or a list that would grow too long"),
    # DP2xx: bounds and types
    Code("DP201", DATATYPE, "an operation on types it does not take"),
    Code("DP203", UNSUPPORTED, "an aggregate of a value without bounds"),
    Code("DP204", UNSUPPORTED, "bounds too wide for exact arithmetic"),
    Code("DP205", DATATYPE, "a literal that is not a value of its type"),
    # DP3xx: units and joins
    Code("DP301", UNSUPPORTED, "a join that pairs rows of different units"),
    Code("DP302", UNSUPPORTED, "tables of different kinds of unit in one query"),
    Code("DP303", UNSUPPORTED, "rows that would belong to no unit"),
    Code(
        "DP304",
        UNSUPPORTED,
        "a join whose fan-out is not bounded, or is more than a million rows for one unit",
    ),
    Code("DP305", UNSUPPORTED, "identifiers shown or grouped by"),
    Code(
        "DP306", UNSUPPORTED, "a query whose running time could depend on rows, under strict timing"
    ),
    # DP4xx: budget and settings
    Code("DP401", PARAMETER, "a setting or its value that is not accepted"),
    Code("DP402", BUDGET, "a charge larger than what an account has left"),
    Code("DP403", BUDGET, "a charge larger than one query may cost"),
    Code("DP404", BUDGET, "an accuracy that costs more than the budget allows"),
    Code("DP405", UNSUPPORTED, "a mechanism the session does not allow"),
    Code("DP406", PARAMETER, "an option of WITH DIFFERENTIAL_PRIVACY that cannot take effect"),
    # DP5xx: groups
    Code("DP501", UNSUPPORTED, "groups that are not public, in a session without delta"),
    Code("DP502", UNSUPPORTED, "more public groups than the policy allows"),
    # DP6xx: policy and role
    Code("DP601", PARAMETER, "a policy that cannot be used"),
    Code("DP602", PARAMETER, "a role the policy does not list"),
    Code("DP603", PARAMETER, "a source that does not match the policy"),
    Code("DP604", PARAMETER, "data that does not keep what the policy declares"),
    Code("DP605", PARAMETER, "data that changed while `data_version` did not"),
    # DP9xx: not the analyst's fault
    Code("DP901", INTERNAL, "the engine could not finish"),
    Code("DP902", INTERNAL, "the ledger cannot be written"),
    Code("DP903", INTERNAL, "a defect in dpsql"),
    Code("DP904", CANCELED, "a statement that was stopped"),
    Code("DP905", LIMIT, "an answer that takes more memory than it may"),
)

CODES: dict[str, Code] = {code.number: code for code in _ALL}
