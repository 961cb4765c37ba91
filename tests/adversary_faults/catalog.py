"""Faults of the catalog that clients see."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

_OPEN = (
    Edit("engines/duckdb/lockdown.py", '    "enable_external_access": "false",\n', ""),
    Edit(
        "engines/duckdb/lockdown.py",
        '        connection.execute(f"SET {setting} = {value}")\n    prove(connection)',
        '        connection.execute(f"SET {setting} = {value}")',
    ),
)

FAULTS = (
    Fault(
        "files are read through the catalog",
        "catalog",
        (
            *_OPEN,
            Edit(
                "engines/duckdb/allowlist/nodes.py",
                '    name = check_listed_name("function", node, _CALLED, listing.rows)\n',
                '    name = node["function_name"]\n',
            ),
            Edit(
                "serve/catalog/rewrite.py",
                '            raise WireError(NO_FUNCTION, f"function {name} does not exist", position=self._place())\n',
                "            self.out.append(self._in[self._at].text)\n",
            ),
        ),
        "Any log-in reads any file that the server can read, the database among them, for nothing.",
        "issue 12: files and the engine, through the catalog",
    ),
    Fault(
        "a text is a relation of the catalog",
        "catalog",
        (
            *_OPEN,
            Edit(
                "engines/duckdb/allowlist/nodes.py",
                "    known = (schema, name) in listing.relations or (not schema and name in scope)",
                '    known = (schema, name) in listing.relations or (not schema and name in scope) or "/" in name',
            ),
        ),
        "SELECT * FROM '/path' gives a file's rows.",
        "issue 12: files and the engine, through the catalog",
    ),
    Fault(
        "functions of the engine are called by another name",
        "catalog",
        (
            Edit(
                "engines/duckdb/allowlist/rules.py",
                "    if not bare or written[0].lower() not in names:",
                "    if bare and written[0].lower() not in names:",
            ),
            Edit(
                "serve/catalog/client_words.py",
                "    if schema.name not in SCHEMAS:",
                '    if schema.name not in (*SCHEMAS, "main", "system"):',
            ),
        ),
        "main.duckdb_settings() and its like tell of the machine.",
        "issue 12: a dotted call escapes the function list",
    ),
    Fault(
        "anybody's session may be ended",
        "catalog",
        (
            Edit(
                "serve/pgwire/crowd.py",
                "        if all(s.process != process for s in self.own()):",
                "        if not self.crowd.holds(process):",
            ),
        ),
        "A client ends or cancels the statements of other log-ins.",
        "issue 12: ends another login's session",
    ),
    Fault(
        "others' statements are shown",
        "catalog",
        (
            Edit(
                "serve/pgwire/crowd.py",
                "    if theirs.home is not mine.home or theirs.login != mine.login:\n        return False\n    return",
                "    if theirs.home is not mine.home:\n        return False\n    return",
            ),
        ),
        "pg_stat_activity shows what other people ask, and who they are.",
    ),
    Fault(
        "tables of other roles are listed",
        "catalog",
        (
            Edit(
                "serve/catalog/rows.py",
                "    visible = [t for t in policy.tables.values() if tables is None or t.name in tables]",
                "    visible = list(policy.tables.values())",
            ),
        ),
        "A role sees names, ranges and values of tables that it may not ask.",
    ),
    Fault(
        "the engine's words are a client's",
        "catalog",
        (
            Edit(
                "serve/catalog/failures.py",
                '    state, said = _STATES.get(failure.kind, (UNSUPPORTED, "the catalog cannot answer this"))\n    return WireError(state, said)',
                '    state, said = _STATES.get(failure.kind, (UNSUPPORTED, "the catalog cannot answer this"))\n    return WireError(state, f"{said}: {failure.words}")',
            ),
        ),
        "Errors name the engine, its functions and its settings.",
        "errors with engine words",
    ),
)
