#!/bin/sh
# Fetches clients of the endpoint that are not in the lock: the JDBC and ODBC drivers, node-postgres,
# DuckDB's postgres scanner and, when asked for everything (clients.sh all), dbt, pgcli, Django, ibis,
# pgAdmin 4, Sequelize and drizzle-kit; or Apache Superset
# (clients.sh superset); or Cube (clients.sh cube), in the newest version that needs no library from outside
# npm. What cannot be had is left out, and its tests are skipped, unless whoever asked for it requires it.
set -u
cd "$(dirname "$0")/../.."
place=build/clients
mkdir -p "$place"
wanted=""
[ -e /usr/share/java/postgresql.jar ] || wanted="$wanted libpostgresql-jdbc-java"
command -v odbcinst >/dev/null 2>&1 && odbcinst -q -d 2>/dev/null | grep -q PostgreSQL ||
    wanted="$wanted unixodbc odbc-postgresql"
command -v javac >/dev/null 2>&1 || wanted="$wanted openjdk-17-jdk-headless"
command -v npm >/dev/null 2>&1 || wanted="$wanted npm"
if [ -n "$wanted" ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -q >/dev/null
    for package in $wanted; do
        timeout 240 apt-get install -y -q --no-install-recommends "$package" >/dev/null ||
            echo "$package cannot be had" >&2
    done
fi
if [ ! -d "$place/node_modules/pg-cursor" ] && command -v npm >/dev/null 2>&1; then
    timeout 240 npm install --silent --no-progress --prefix "$place" pg pg-cursor ||
        echo "node-postgres cannot be had" >&2
fi
if [ ! -d "$place/duckdb" ]; then
    python3 -m venv "$place/duckdb" &&
        timeout 240 "$place/duckdb/bin/python" -m pip install -q "duckdb==1.5.5" \
            "duckdb-extension-postgres-scanner==1.5.5" ||
        echo "DuckDB's postgres scanner cannot be had" >&2
fi
if [ "${1:-}" = all ] && [ ! -x "$place/dbt/bin/dbt" ]; then
    python3 -m venv "$place/dbt" &&
        "$place/dbt/bin/python" -m pip install -q "dbt-core<1.11" "dbt-postgres<1.10" ||
        echo "dbt cannot be had" >&2
fi
if [ "${1:-}" = all ]; then
    # Each in an environment of its own: name, then what is installed.
    while read -r name packages; do
        [ -x "$place/$name/bin/python" ] && continue
        # shellcheck disable=SC2086
        python3 -m venv "$place/$name" && "$place/$name/bin/python" -m pip install -q $packages || {
            echo "$name cannot be had" >&2
            rm -rf "${place:?}/$name"
        }
    done <<END
pgcli pgcli
django django psycopg[binary]
ibis ibis-framework[postgres] packaging pandas sqlglot<28
pgadmin pgadmin4 psycopg[binary]
END
    if [ ! -d "$place/node_modules/drizzle-kit" ] && command -v npm >/dev/null 2>&1; then
        npm install --silent --no-progress --prefix "$place" pg pg-cursor sequelize pg-hstore \
            drizzle-kit drizzle-orm || echo "Sequelize and drizzle-kit cannot be had" >&2
    fi
fi
if [ "${1:-}" = superset ] && [ ! -x "$place/superset/bin/superset" ]; then
    python3 -m venv "$place/superset" &&
        "$place/superset/bin/python" -m pip install -q "apache-superset==6.1.0" "flask-caching<2.4" \
            rich cachetools psycopg2-binary ||
        echo "Superset cannot be had" >&2
fi
if [ "${1:-}" = cube ] && [ ! -d "$place/cube/node_modules/@cubejs-backend/server-core" ]; then
    npm install --silent --no-progress --no-audit --no-fund --ignore-scripts --legacy-peer-deps \
        --prefix "$place/cube" @cubejs-backend/server-core@0.31.69 \
        @cubejs-backend/postgres-driver@0.31.69 express@4 ||
        echo "Cube cannot be had" >&2
fi
exit 0
