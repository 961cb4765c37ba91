#!/bin/sh
# Installs a PostgreSQL server and psql, for the tests of the shared ledger (they start the server
# themselves) and of the endpoint.
# Without one those tests are skipped; DPSQL_REQUIRE_POSTGRES=1 makes them fail instead.
set -eu
if command -v psql >/dev/null 2>&1; then
    command -v initdb >/dev/null 2>&1 && exit 0
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0
fi
if command -v apt-get >/dev/null 2>&1; then
    apt-get update -q && apt-get install -y -q --no-install-recommends postgresql
elif command -v dnf >/dev/null 2>&1; then
    dnf install -y -q postgresql-server
elif command -v brew >/dev/null 2>&1; then
    brew install -q postgresql
else
    echo "install a PostgreSQL server, 13 or later" >&2
    exit 1
fi
