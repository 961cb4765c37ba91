"""Django, from an environment of its own: inspectdb, and what it reads of keys and indexes."""

import io
import json
import os

import django
from django.conf import settings

settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"],
    "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"],
    "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
}})  # fmt: skip
django.setup()

from django.core.management import call_command  # noqa: E402 (it needs the settings)
from django.db import connection  # noqa: E402

TABLES = ("countries", "customers", "orders", "visits")


def check(name, act):
    with connection.cursor() as cursor:
        print(json.dumps({"check": name, "saw": act(cursor)}, default=str), flush=True)


def inspected(*tables):
    out = io.StringIO()
    call_command("inspectdb", *tables, stdout=out)
    return out.getvalue().splitlines()


look = connection.introspection
check("inspectdb of a public table", lambda _: inspected("countries"))
check("inspectdb", lambda _: inspected())
check("tables", lambda c: sorted(look.get_table_list(c)))
check("foreign keys", lambda c: [look.get_relations(c, t) for t in TABLES])
check("constraints and indexes", lambda c: [look.get_constraints(c, t) for t in TABLES])
check("primary keys", lambda c: [look.get_primary_key_columns(c, t) for t in TABLES])
check("sequences", lambda c: [look.get_sequences(c, t) for t in TABLES])
