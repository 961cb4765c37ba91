"""What lies around the data: files, the policy, the environment, what other roles see. No face leads there."""

from __future__ import annotations

import base64
import io
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from endpoint import PASSWORD, ROLE, generous
from support.catalogs import workers
from support.datasets import policy_text, script
from support.services import noon
from talk import SYNC, Client, FixedHouse, bind, describe, errors, execute, kinds, parse, query
from test_http import Caller

import dpsql
from dpsql.cli import main
from dpsql.serve import users
from dpsql.serve.catalog import catalog as catalog_module
from dpsql.serve.catalog.catalog import macros, role_catalog
from dpsql.serve.catalog.words import BARE, BUILTIN, ELSEWHERE
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.service import Service
from dpsql.sql.parse import LONGEST_TEXT

CANARIES = {
    where: f"CANARY{where}{zlib.crc32(where.encode())}"
    for where in ("FILE", "ROW", "POLICY", "OTHER", "ENVIRONMENT")
}
"""Words that are in one place each: a file beside the data, a row, the policy's parts that the role is
not shown, a table of others, and the environment."""
PATHS = ("canary.csv", "canary.parquet", "canary.json", "shop.duckdb", "policy.yaml")
SAMPLED = 400


@dataclass
class Place:
    folder: Path
    service: Service
    house: ServiceEndpoint

    def client(self, role: str = ROLE) -> Client:
        client = Client(FixedHouse(self.house))
        assert kinds(client.login(role, PASSWORD)).endswith("Z")
        return client


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("doors")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(script("shop"))
        connection.execute(f"UPDATE customers SET email = '{CANARIES['ROW']}@example.org'")
        connection.execute(
            f"CREATE TABLE secrets AS SELECT 1 AS customer_id, '{CANARIES['OTHER']}' AS word"
        )
        row = f"(SELECT 1 AS a, '{CANARIES['FILE']}' AS b)"
        for file in PATHS[:3]:
            connection.execute(f"COPY {row} TO '{folder / file}'")
    text = generous(policy_text("shop")).replace(
        "  countries: {public: true}",
        f"  countries: {{public: true}}\n  secrets: {{public: true, description: {CANARIES['POLICY']}}}",
    )
    text += f"  {CANARIES['POLICY'].lower()}: {{epsilon: 1, tables: [secrets], password: {CANARIES['POLICY']}}}\n"
    text = text.replace(
        "    max_groups_per_unit: 3\n",
        "    max_groups_per_unit: 3\n    tables: [customers, orders, countries]\n",
        1,
    )
    (folder / "policy.yaml").write_text(text)
    os.environ["DPSQL_CANARY"] = CANARIES["ENVIRONMENT"]
    service = Service.open(folder / "policy.yaml", clock=noon)
    try:
        yield Place(folder, service, ServiceEndpoint(service, role_catalog))
    finally:
        service.close()
        del os.environ["DPSQL_CANARY"]


def seen(*said: str | bytes) -> list[str]:
    """The canaries in what came back, as they are or spelled in another way."""
    text = b"\n".join(s.encode("utf-8", "surrogatepass") if isinstance(s, str) else s for s in said)
    lower = text.lower()
    return [
        where for where, word in CANARIES.items()
        if word.encode().lower() in lower or word.encode().hex().encode() in lower
        or base64.b64encode(word.encode())[:12] in text or word[::-1].encode() in text
    ]  # fmt: skip


def attacks(folder: Path) -> list[str]:
    """What was tried from the outside, and its like. None of it may succeed."""
    csv, found = f"{folder}/canary.csv", list[str]()
    for path in (
        *(f"{folder}/{p}" for p in PATHS),
        "/etc/passwd",
        "/proc/self/environ",
        f"{folder}/*",
    ):
        found += [
            f"SELECT * FROM '{path}'", f"TABLE '{path}'", f"FROM '{path}'", f'SELECT * FROM "{path}"',
            f"SELECT * FROM main.read_text('{path}')", f"SELECT content FROM main.read_blob('{path}')",
        ]  # fmt: skip
    found += [
        f"SELECT * FROM main.read_csv('{csv}')", f"SELECT * FROM read_csv('{csv}')",
        f"SELECT * FROM \"main\".\"read_csv\"('{csv}')", f"SELECT * FROM system.main.read_csv('{csv}')",
        f"SELECT * FROM pg_catalog.read_csv('{csv}')", f"SELECT * FROM MAIN.READ_CSV('{csv}')",
        f"SELECT * FROM main.glob('{folder}/*')", f"SELECT * FROM main.sniff_csv('{csv}')",
        f"SELECT * FROM main.read_json('{folder}/canary.json')", f"SELECT * FROM main.read_parquet('{folder}/canary.parquet')",
        f"SELECT * FROM main.parquet_metadata('{folder}/canary.parquet')",
        f"SELECT * FROM main.read_duckdb('{folder}/shop.duckdb', table_name := 'customers')",
        f"SELECT * FROM main.query('SELECT * FROM ''{csv}''')", f"SELECT * FROM main.query_table('{csv}')",
        f"WITH a AS (SELECT * FROM '{csv}') SELECT * FROM a", f"SELECT (SELECT max(b) FROM '{csv}')",
        f"SELECT * FROM pg_class, LATERAL (SELECT * FROM '{csv}') x", f"SELECT 1 UNION ALL SELECT b FROM '{csv}'",
        f"SELECT * FROM pg_class c JOIN '{csv}' x ON true", f"SELECT * FROM (TABLE '{csv}') x",
        f"SELECT 1 WHERE EXISTS (FROM '{csv}')", f"SELECT * FROM (FROM '{csv}') x", f"SELECT * FROM pg_class, '{csv}'",
        "SELECT * FROM main.duckdb_settings()", "SELECT * FROM main.duckdb_secrets()", "SELECT * FROM duckdb_tables",
        "SELECT main.current_setting('secret_directory')", "SELECT getvariable('settings')", "SELECT main.getvariable('login')",
        "SELECT main.getenv('DPSQL_CANARY')", "SELECT getenv('DPSQL_CANARY')", "SELECT * FROM main.pragma_database_list()",
        "SELECT * FROM pgx_shapes.secrets", "SELECT * FROM pgx_shapes.customers", "SELECT * FROM pgx_information.tables",
        "SELECT word FROM secrets WHERE 1 = 0", "SELECT * FROM secrets", "SELECT * FROM public.secrets LIMIT 0",
        "SELECT main.pgx_stop(1001, true)", "SELECT pgx_stop(1001, true)", "SELECT main.pgx_stop(1, 1001, true)",
        "SELECT pgx_set('a', 'b', false)", "SELECT main.pgx_set('a', 'b', false)", "SELECT pgf_pg_terminate_backend(1001)",
        "SELECT 'a' LIKE 'b' ESCAPE typeof(1)", "SELECT 1 FROM (DESCRIBE SELECT 1)", "SELECT 1 FROM (SUMMARIZE SELECT 1)",
        "SELECT * FROM (SHOW ALL TABLES) x", "SELECT COLUMNS(*) FROM pg_class", "SELECT \"current_user\"", "SELECT enum_range(NULL::pg_name)",
        "SELECT NULL::pg_name", "SELECT * FROM pgx_nothing", "PIVOT pg_class ON relname", "DESCRIBE pg_class", "SUMMARIZE pg_class",
        f"ATTACH '{folder}/shop.duckdb' AS x", f"COPY (SELECT 1) TO '{folder}/out.csv'", f"COPY pg_class FROM '{csv}'",
        f"EXPORT DATABASE '{folder}/out'", "INSTALL httpfs", "LOAD httpfs", "PRAGMA database_list", "CALL pragma_version()",
        "SET enable_external_access = true; SELECT 1 FROM pg_clas", "USE system", "CHECKPOINT", "VACUUM; SELECT main.x()",
        f"PREPARE p AS SELECT * FROM '{csv}'; EXECUTE p", f"EXPLAIN SELECT * FROM '{csv}'", f"EXPLAIN ANALYZE FROM '{csv}'",
        f"DECLARE c CURSOR FOR SELECT * FROM '{csv}'", f"SELECT * FROM '{csv}' FETCH FIRST 1 ROW ONLY",
        f"SELECT * FROM customers UNION SELECT * FROM '{csv}'", f"SELECT count(*) FROM customers, '{csv}'",
        f"SELECT count(*) FROM customers WHERE email IN (SELECT b FROM '{csv}')", f"COPY (SELECT * FROM '{csv}') TO STDOUT",
        f"SELECT count(*) FROM read_csv('{csv}')", f"SELECT count(*) FROM customers JOIN main.read_text('{csv}') t ON true",
    ]  # fmt: skip
    return found


_SPELLED = (
    "{f}({a})", "main.{f}({a})", "system.main.{f}({a})", "pg_catalog.{f}({a})", '"{f}"({a})', "{F}({a})",
    "({a}).{f}()", "main.\"{f}\"({a})", "memory.main.{f}({a})",
)  # fmt: skip
_PLACED = (
    "SELECT {x}", "SELECT * FROM {x}", "SELECT * FROM pg_class, LATERAL {x} y", "WITH a AS (SELECT {x}) SELECT * FROM a",
    "SELECT 1 FROM pg_class ORDER BY {x}", "SELECT 1 WHERE {x} IS NOT NULL", "VALUES ({x})", "SELECT lower({x}::text)",
    "SELECT 1 FROM pg_class a JOIN pg_class b ON {x}", "SELECT (SELECT {x})", "SELECT 1 LIMIT {x}", "SELECT count(*) FROM customers WHERE {x}",
    "SELECT 'a' LIKE 'b' ESCAPE {x}", "SELECT 1 SIMILAR TO {x}", "SELECT ARRAY[{x}]", "SELECT CASE WHEN true THEN {x} END",
)  # fmt: skip


def sample(folder: Path) -> list[tuple[str, str, str]]:
    """Functions of the engine with what could be read, in a spelling and a place: the same each time."""
    with duckdb.connect(":memory:") as engine:
        names = [
            n
            for (n,) in engine.execute(
                "SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1"
            ).fetchall()
        ]
    words = [n for n in names if n.isidentifier()]
    words += ["pgx_stop", "pgx_set", "pgx_login", "getvariable"]
    given = (
        "",
        f"'{folder}/canary.csv'",
        f"'{folder}/shop.duckdb'",
        "'DPSQL_CANARY'",
        "1",
        "'a', 'b'",
    )
    found = []
    for number in range(SAMPLED):
        name, spelled = _one_of(words, number, "name"), _one_of(_SPELLED, number, "spelled")
        x = spelled.format(f=name, F=name.upper(), a=_one_of(given, number, "given"))
        found.append((name, spelled, _one_of(_PLACED, number, "placed").format(x=x)))
    return found


def _one_of(known: Sequence[str], number: int, what: str) -> str:
    return known[zlib.crc32(f"{what} {number}".encode()) % len(known)]


def _simple(client: Client, sql: str) -> bytes:
    return client.send(query(sql))


def _extended(client: Client, sql: str) -> bytes:
    """Prepared, described and run twice: what was admitted once is kept."""
    asked = (
        parse("", sql) + describe("S", "") + bind("", "") + describe("P", "") + execute("") + SYNC
    )
    return client.send(asked) + client.send(asked)


def _failures(place: Place, tried: Sequence[str]) -> list[str]:
    """Attacks that succeeded in any way, over the simple and the extended protocol."""
    client, wrong = place.client(), list[str]()
    for sql in tried:
        for face in (_simple, _extended):
            said = face(client, sql)
            if client.closed:
                client = place.client()
            if seen(said) or not errors(said):
                wrong.append(f"{face.__name__}: {sql}: {seen(said)}")
    return wrong


def test_no_attack_over_the_wire_gets_anything(place: Place) -> None:
    assert not _failures(place, attacks(place.folder))


def test_only_what_is_listed_runs(place: Place) -> None:
    client, ran = place.client(), 0
    known = BUILTIN | set(ELSEWHERE) | set(BARE) | {name[4:] for name in macros()}
    for name, spelled, sql in sample(place.folder):
        for face in (_simple, _extended):
            said = face(client, sql)
            assert not seen(said), sql
            if not errors(said):
                ran += 1
                assert name in known, sql
                assert spelled.startswith(("{f}", "{F}", '"{f}', "pg_catalog")), sql
    assert ran, "to refuse everything would be no answer"


def test_no_other_face_gets_anything(place: Place) -> None:
    everything = [*attacks(place.folder), *(sql for _, _, sql in sample(place.folder)[::8])]
    user, token = users.with_token("robot", ROLE)
    users.write(place.service.policy.front.users, [user])
    house = ServiceEndpoint(place.service, role_catalog)
    robot = Caller(Face(lambda: house.snapshots).app(), token)
    asked = everything[::3]
    said = [robot.post("/v1/query", json={"sql": sql}) for sql in asked]
    said += [robot.post("/v1/explain", json={"sql": sql}) for sql in asked[::3]]
    assert not seen(*(one.text for one in said))
    assert all(one.status_code >= 400 for one in said)
    cursor = dpsql.connect(place.folder / "policy.yaml", role=ROLE).cursor()
    for sql in everything:
        with pytest.raises(dpsql.Error) as caught:
            cursor.execute(sql)
        assert not seen(str(caught.value), repr(caught.value))
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        for sql in everything[::30]:
            assert main(
                ["query", "--policy", str(place.folder / "policy.yaml"), "--role", ROLE, sql]
            )
    assert not seen(out.getvalue())


def test_another_login_s_sessions_are_not_there(place: Place) -> None:
    """Whatever number is guessed, and whatever function is called."""
    client = place.client()
    said = b"".join(
        _simple(client, f"SELECT {f}({n})")
        for n in (0, 1, 42, 1001, 2**31) for f in ("pg_cancel_backend", "pg_terminate_backend", "pgx_stop", "main.pgx_stop")
    )  # fmt: skip
    assert not client.closed
    assert b"\0\0\0\x01t" not in said


NO_LIST = """
from dpsql.engines.duckdb.allowlist import StatementCheck
StatementCheck.check = lambda *_: None
"""
NO_LOCK = """
from dpsql.engines.duckdb import lockdown
lockdown.SETTINGS = {"lock_configuration": "true"}
lockdown.prove = lambda _: None
"""


@pytest.mark.parametrize("also_files", [False, True])
def test_without_the_check_attacks_succeed(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, also_files: bool
) -> None:
    """A control: what is looked for is found, once the protections are gone."""
    monkeypatch.setattr(catalog_module, "check_words", lambda _: None)
    open_place = Place(place.folder, place.service, ServiceEndpoint(place.service, role_catalog))
    tried = [
        a
        for a in attacks(place.folder)
        if "canary.csv" in a or "shop.duckdb" in a or "settings" in a
    ]
    with workers(NO_LIST + NO_LOCK * also_files) as without:
        monkeypatch.setattr(catalog_module, "WORKERS", without)
        wrong = "\n".join(_failures(open_place, tried))
    assert "duckdb_settings" in wrong
    assert ("'FILE'" in wrong) == ("'ROW'" in wrong) == also_files


def test_a_dotted_call_that_escapes_the_words_is_refused_by_the_tree(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two checks left out: the other one holds."""
    monkeypatch.setattr(catalog_module, "check_words", lambda _: None)
    wrong = [
        w for w in _failures(place, attacks(place.folder)) if "pgx_" not in w and "pgf_" not in w
    ]
    assert not wrong


@pytest.mark.parametrize("what", [
    "repeat('x', 1000000000)", "lpad('x', 2000000000, 'y')", "rpad('x', 200000)",
    "quote_ident(" * 30 + "'a'" + ")" * 30, "current_setting(" * 5 + "'a'" + ")" * 5,
    "'" + "x" * 200_000 + "'", "cast(" * 60 + "1" + " as int)" * 60, "a[" * 60 + "1" + "]" * 60, "1" + ",1" * 20_000,
], ids=["repeat", "lpad", "rpad", "quote_ident", "current_setting", "text", "brackets", "subscripts", "words"])  # fmt: skip
def test_what_would_take_memory_or_minutes_is_refused_at_once(place: Place, what: str) -> None:
    client, begun = place.client(), time.monotonic()
    state = "0A000" if len(what) > LONGEST_TEXT else "54000"  # the service refuses what is too long
    assert errors(_simple(client, f"SELECT {what}")) == [state]
    assert time.monotonic() - begun < 30
