"""pgcli, from an environment of its own: what it reads at its start for completion, and its commands."""

import json
import os

from pgcli.completion_refresher import CompletionRefresher
from pgcli.pgcompleter import PGCompleter
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial

server = PGExecute(
    os.environ["PGDATABASE"], os.environ["PGUSER"], os.environ["PGPASSWORD"],
    os.environ["PGHOST"], os.environ["PGPORT"], None,
)  # fmt: skip
completer = PGCompleter(smart_completion=True, pgspecial=PGSpecial())


def check(name, act):
    print(json.dumps({"check": name, "saw": act()}, default=str), flush=True)


def completion():
    for refresh in CompletionRefresher.refreshers.values():
        refresh(completer, server)
    return {
        kind: {name: sorted(found) for name, found in schemas.items() if name == "public"}
        for kind, schemas in completer.dbmetadata.items()
    }


def builtin_functions():
    return sorted([f.func_name, f.arg_types, f.return_type] for f in server.functions()
            if f.func_name in ("substr", "translate", "date_trunc"))  # fmt: skip


def ran(sql):
    return [
        [title, [list(row) for row in rows or []], headers, status]
        for title, rows, headers, status, *_ in server.run(sql, pgspecial=PGSpecial())
    ]


check("completion at the start", completion)
check("functions and their arguments", builtin_functions)
check("a query", lambda: ran("select country from countries order by 1 limit 2"))
check("tables", lambda: [row[1] for row in ran(r"\dt")[0][1]])
check("columns of a table", lambda: ran(r"\d orders"))
check("databases", lambda: ran(r"\l")[0][2])
check("views", lambda: ran(r"\dv"))
