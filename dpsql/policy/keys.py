"""Every key that a policy may have: its shape, its default and its meaning.

The loader, the JSON schema and the table in the README are all made from this one list.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.policy.key_shapes import (
    Choice,
    ColumnType,
    Flag,
    Key,
    Listed,
    Name,
    Named,
    Names,
    Number,
    Record,
    Text,
    Values,
    Whole,
)
from dpsql.policy.model import EXTREMES, MECHANISMS
from dpsql.policy.scalars import PERCENT

EPSILON = Number(Fraction(0), Fraction(10**9), open_low=True)
DELTA = Number(Fraction(0), Fraction(1), open_high=True)
SIZE = Text(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", "4GB")
MESSAGE = Whole(1_000, 1_000_000_000)
WINDOWS = Choice(("day", "week", "month", "year"))
COMPOSITIONS = Choice(("zcdp", "basic"))
STALE = Choice(("warn", "refuse"))
SEARCH = Choice(("auto", "on", "off"))

SOURCE = Record(
    "source",
    (
        Key("engine", Choice(("duckdb",)), "the engine that holds the data", "duckdb"),
        Key("path", Text(), "the data, relative to the policy file", required=True),
    ),
)
LEDGER = Record(
    "ledger",
    (
        Key("store", Choice(("sqlite", "postgres")), "what keeps the record", "sqlite"),
        Key(
            "path",
            Text(),
            "the file that records what was spent, relative to the policy file",
            "`<policy>.ledger.db` beside the policy",
        ),
        Key("dsn", Text(), "where the PostgreSQL server is; its password is in PGPASSFILE", "none"),
        Key("schema", Name(), "the schema of the ledger's tables on the server", "dpsql"),
        Key(
            "must_exist",
            Flag(),
            "whether a missing ledger is an error; otherwise it is made anew, with nothing spent",
            "false",
        ),
        Key(
            "head",
            Text(),
            "a file, best on another disk, in which the ledger's last hash is noted after each "
            "change, relative to the policy file",
            "none",
        ),
    ),
)
UNIT = Record(
    "unit {0}",
    (
        Key("table", Name(), "the table with one row per unit", "none: tables hold the key"),
        Key(
            "key",
            Names(bare="row"),
            "the column or columns that tell units apart; `row` if each row is a unit",
            required=True,
        ),
        Key("group_size", Whole(1, 1_000_000), "how many units are protected together", "1"),
    ),
)
COLUMN = Record(
    "column {0}.{1}",
    (
        Key("type", ColumnType(), "the type of its values", required=True),
        Key("nullable", Flag(), "whether values may be missing", "false"),
        Key("identifier", Flag(), "never shown and never a group key", "false"),
        Key("range", Values(2), "least and greatest value; others count as the nearer one", "none"),
        Key("values", Values(), "every value of the column, as public knowledge", "none"),
        Key("values_from", Text(), "`table.column` of a public table that lists them", "none"),
        Key(
            "extremes",
            Choice(EXTREMES),
            "whether MIN and MAX of all rows are found in the data, or are the ends of `range` or "
            "`values`, for free",
            "measured",
        ),
        Key("max_length", Whole(1, 10_000), "most characters that LENGTH counts", "none"),
        Key("description", Text(), "a note for analysts", "none"),
    ),
)
FOREIGN_KEY = Record(
    "a foreign key of table {0}",
    (
        Key("columns", Names(), "columns of this table", required=True),
        Key("references", Name(), "the table they lead to", required=True),
        Key("key", Names(), "the columns of that table that they equal", "the key of that table"),
        Key("same_unit", Flag(), "both rows are of one unit, by another foreign key", "false"),
    ),
)
TABLE_ACCOUNT = Record(
    "account of table {0}",
    (
        Key("epsilon", EPSILON, "what all roles may spend on the table", "the dataset's"),
        Key("delta", DELTA, "the delta of that guarantee", "the dataset's"),
        Key("composition", COMPOSITIONS, "how charges add up", "the dataset's, `basic` if delta 0"),
        Key("per", WINDOWS, "when it is renewed", "never"),
    ),
)
TABLE = Record(
    "table {0}",
    (
        Key("unit", Name(), "whose rows these are; makes the table private", "none"),
        Key("public", Flag(), "answered exactly and for free", "false"),
        Key(
            "unit_key",
            Names(),
            "the columns that hold the key of a unit without a table",
            "the columns named like the key",
        ),
        Key("key", Names(), "a column or columns that no two rows share", "none"),
        Key("foreign_keys", Listed(FOREIGN_KEY), "the way to the unit and to other tables", "none"),
        Key("max_rows_per_unit", Whole(1), "most rows of one unit that count", "1 if it must be"),
        Key("max_rows_per_group", Whole(1), "most rows of one unit in one group", "no limit"),
        Key("account", TABLE_ACCOUNT, "what may be spent on this table", "that of the data set"),
        Key(
            "columns",
            Named(COLUMN, "columns"),
            "the columns that dpsql may use",
            "all, if the table is public",
        ),
        Key("description", Text(), "a note for analysts", "none"),
    ),
)
DATASET = Record(
    "accounts.dataset",
    (
        Key("epsilon", EPSILON, "what all roles may spend together", required=True),
        Key("delta", DELTA, "the delta of that guarantee", "0"),
        Key("composition", COMPOSITIONS, "how charges add up", "`zcdp` if delta > 0, else `basic`"),
        Key("per", WINDOWS, "when it is renewed", "never"),
    ),
)
ACCOUNTS = Record("accounts", (Key("dataset", DATASET, "the whole data set", required=True),))
SESSION = Record(
    "session of role {0}",
    (
        Key("epsilon", EPSILON, "what one session may spend", "the role's"),
        Key("delta", DELTA, "the delta of that guarantee", "the role's"),
        Key("per", WINDOWS, "when it is renewed", "never"),
    ),
)
QUERY = Record(
    "query of role {0}",
    (
        Key("epsilon", EPSILON, "what one query costs at most", "a tenth of the session's"),
        Key("share", Text(PERCENT, "1%"), "or the share of a session's rho that it costs", "none"),
        Key("delta", DELTA, "the delta one query costs at most", "1 % or `share` of the session's"),
    ),
)
ROLE = Record(
    "role {0}",
    (
        Key("password", Text(), "a SCRAM-SHA-256 verifier, or plain text for trials", "none"),
        Key("epsilon", EPSILON, "what the role may spend", "the dataset's"),
        Key("delta", DELTA, "the delta of that guarantee", "the dataset's"),
        Key("composition", COMPOSITIONS, "how charges add up", "the dataset's, `basic` if delta 0"),
        Key("per", WINDOWS, "when it is renewed", "never"),
        Key("session", SESSION, "one session", "as the role"),
        Key("query", QUERY, "one query", "shares of the session"),
        Key("max_groups_per_unit", Whole(1), "most private groups of one unit that count", "3"),
        Key("search", SEARCH, "whether limits are searched for unless a session says so", "auto"),
        Key(
            "mechanisms",
            Names(single=False, words=MECHANISMS),
            "kinds of noise it may be given",
            "all",
        ),
        Key("tables", Names(single=False), "tables and views it may see", "all"),
        Key("owner", Flag(), "sees budgets and charges of all roles in dpsql's tables", "false"),
        Key("may_become", Names(single=False), "roles it may take with SET ROLE", "none"),
        Key("connections", Whole(1, 100_000), "most connections at once", "800"),
        Key("idle_seconds", Whole(1), "after which an idle connection is closed", "the endpoint's"),
        Key("statement_seconds", Whole(1), "after which a statement is cancelled", "never"),
        Key(
            "message_bytes", MESSAGE, "longest message, of statements and values", "the endpoint's"
        ),
    ),
)
ENDPOINT = Record(
    "endpoint",
    (
        Key("connections", Whole(1, 100_000), "most connections of all roles at once", "1000"),
        Key("startup_seconds", Whole(1, 600), "the time in which a log-in must end", "15"),
        Key("idle_seconds", Whole(1), "for roles without a value of their own", "never"),
        Key(
            "send_seconds",
            Whole(1, 86_400),
            "after which a connection is closed whose client takes nothing",
            "60",
        ),
        Key("message_bytes", MESSAGE, "longest message, of statements and values", "16777216"),
        Key(
            "memory",
            SIZE,
            "memory of `dpsql serve` with all its processes and engines, at least 512MB more than "
            "`limits.memory`",
            "`limits.memory` and 1GB",
        ),
    ),
)
LIMITS = Record(
    "limits",
    (
        Key("max_cells", Whole(1), "most values in one answer", "100000"),
        Key("memory", SIZE, "memory of the engine", "4GB"),
        Key("threads", Whole(0, 1024), "threads of the engine; 0 leaves it to the engine", "0"),
        Key(
            "timeout_seconds",
            Whole(1, 86_400),
            "longest run of one statement: planning, engine and post-processing",
            "300",
        ),
    ),
)
POLICY = Record(
    "the policy",
    (
        Key("source", SOURCE, "where the data is", required=True),
        Key("data_version", Text(), "to be changed whenever the data changes", required=True),
        Key("stale", STALE, "what to do when data changed and `data_version` did not", "warn"),
        Key("ledger", LEDGER, "where spending is recorded"),
        Key("time_zone", Text(), "the zone of the windows of `per`, such as Europe/Vienna", "UTC"),
        Key("units", Named(UNIT, "units"), "who is protected", "none"),
        Key("tables", Named(TABLE, "tables"), "the tables that dpsql may use", required=True),
        Key(
            "views",
            Named(Text(), "queries"),
            "queries that are read like tables; a role may see one without the tables below",
            "none",
        ),
        Key("accounts", ACCOUNTS, "what may be spent in all", required=True),
        Key("roles", Named(ROLE, "roles"), "who may ask, and how much", required=True),
        Key("limits", LIMITS, "bounds on work, not on privacy"),
        Key(
            "endpoint",
            ENDPOINT,
            "limits of `dpsql serve` for its clients; of several policies, those of the first one hold",
        ),
        Key(
            "latency",
            Text(r"off|(quantum|fixed)\([0-9]{1,6}(ms|s)\)", "quantum(50ms)"),
            "when answers leave: at multiples of a time after the question; `fixed(2s)` also stops "
            "what takes longer",
            "off",
        ),
        Key(
            "strict_timing",
            Choice(("on", "off")),
            "whether engine statements read, join and group all rows whatever their conditions "
            "find; statements that cannot be run so are refused",
            "off",
        ),
        Key(
            "preview",
            Choice(("refuse", "empty")),
            "what a connected tool that asks for rows of private tables gets: a refusal, or their "
            "columns with no rows",
            "refuse",
        ),
        Key(
            "database",
            Text(),
            "the name of the database that clients connect to, where several policies are served",
            "the file's name without its ending",
        ),
        Key("users", Text(), "the file of `dpsql user`", "`<policy>.users` beside the policy"),
        Key(
            "cleartext",
            Flag(),
            "take passwords themselves, over TLS only, for clients without SCRAM",
            "false",
        ),
    ),
)
