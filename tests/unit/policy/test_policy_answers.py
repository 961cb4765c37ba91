"""What a stored answer is kept under: all that shapes it, and nothing about who may spend how much."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.services import noon, policy_file

from dpsql.diagnostics.refusal import Error, Refused
from dpsql.policy import model as m
from dpsql.policy import version
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.types import Kind
from dpsql.policy.version import FIELDS, Part, answers_key, version_of
from dpsql.service import Reply, Service

QUESTIONS = (
    "SELECT COUNT(*) AS n, AVG(amount) AS mean FROM orders",
    "SELECT city || page AS k, COUNT(DISTINCT customer_id) AS n FROM customers JOIN visits USING (customer_id) GROUP BY 1",
    "SELECT channel, SUM(amount) AS total FROM orders GROUP BY channel",
    "SELECT city, COUNT(*) AS n FROM customers GROUP BY city ORDER BY city",
    "SELECT country, COUNT(*) AS n FROM customers WHERE age > 30 GROUP BY country ORDER BY country",
    "SELECT n FROM adults",
)


def rich(text: str) -> str:
    """The shop's policy with a word for each field."""
    text = text.replace(
        "  orders:\n", "  orders:\n    max_rows_per_group: 20\n    description: sales\n"
        "    account: {epsilon: 9, delta: 1e-6, per: year}\n",
    )  # fmt: skip
    text = text.replace("city: {type: text}", "city: {type: text, max_length: 40, description: x}")
    text = text.replace("age: {type: integer,", "age: {type: integer, extremes: declared,")
    return (
        text
        + "  boss: {owner: true, may_become: [analyst], epsilon: 5, delta: 1e-6, session: {epsilon: 1}}\n"
        "views:\n  adults: SELECT COUNT(*) AS n FROM customers WHERE age > 40\n"
        "limits: {threads: 1}\n"
    )


Edit = Callable[[Policy], Policy]


def _whole(**fields: Any) -> Edit:
    return lambda p: replace(p, **fields)


def _part(name: str, key: str, /, **fields: Any) -> Edit:
    """Change fields of one entry of a mapping of the policy."""

    def edit(policy: Policy) -> Policy:
        entries = dict(getattr(policy, name))
        entries[key] = replace(entries[key], **fields)
        return replace(policy, **{name: entries})

    return edit


def _role(**fields: Any) -> Edit:
    return _part("roles", "analyst", **fields)


def _table(**fields: Any) -> Edit:
    return _part("tables", "orders", **fields)


def _column(table: str, column: str, /, **fields: Any) -> Edit:
    def edit(policy: Policy) -> Policy:
        columns = dict(policy.tables[table].columns)
        columns[column] = replace(columns[column], **fields)
        return _part("tables", table, columns=columns)(policy)

    return edit


def _foreign_key(**fields: Any) -> Edit:
    def edit(policy: Policy) -> Policy:
        (key,) = policy.tables["orders"].foreign_keys
        return _table(foreign_keys=(replace(key, **fields),))(policy)

    return edit


def _nested(holder: str, **fields: Any) -> Edit:
    """Change fields of a value that the policy itself holds."""
    return lambda p: replace(p, **{holder: replace(getattr(p, holder), **fields)})


def _bounds(**fields: Any) -> Edit:
    return lambda p: replace(p, front=replace(p.front, bounds=replace(p.front.bounds, **fields)))


def _access(**fields: Any) -> Edit:
    return _role(access=m.Access(**fields))


MORE = m.Allowance(Fraction(30), Fraction(1, 1000), "zcdp", "month")
SERVER = m.LedgerServer("host=example", "dpsql")
EDITS: Mapping[tuple[type, str], Edit] = {
    (m.Policy, "data_version"): _whole(data_version="2026-12-01"),
    (m.Policy, "source"): _nested("source", engine="postgres"),
    (m.Policy, "units"): lambda p: replace(p, units={**p.units, "x": m.Unit("x", None, ("city",))}),
    (m.Policy, "tables"): lambda p: replace(p, tables={n: t for n, t in p.tables.items() if n != "visits"}),
    (m.Policy, "dataset"): _whole(dataset=MORE),
    (m.Policy, "roles"): lambda p: replace(p, roles={n: r for n, r in p.roles.items() if n != "pure"}),
    (m.Policy, "ledger"): _whole(ledger=Path("/elsewhere.db")),
    (m.Policy, "path"): _whole(path=Path("/elsewhere/policy.yaml")),
    (m.Policy, "version"): _whole(version="another"),
    (m.Policy, "answers_key"): _whole(answers_key="another"),
    (m.Policy, "ledger_server"): _whole(ledger_server=SERVER),
    (m.Policy, "ledger_keeping"): _nested("ledger_keeping", must_exist=True),
    (m.Policy, "time_zone"): _whole(time_zone="Asia/Tokyo"),
    (m.Policy, "limits"): _whole(limits=m.Limits(threads=2)),
    (m.Policy, "latency"): _whole(latency=m.Latency(0.001)),
    (m.Policy, "front"): _nested("front", users=Path("/nobody.users")),
    (m.Policy, "views"): lambda p: replace(p, views={**p.views, "v": m.View("v", "SELECT COUNT(*) AS n FROM visits")}),
    (m.Policy, "stale"): _whole(stale="refuse"),
    (m.Policy, "warnings"): _whole(warnings=("careful",)),
    (m.Policy, "places"): _whole(places={}),
    (m.DataSource, "engine"): _nested("source", engine="postgres"),
    (m.DataSource, "path"): _nested("source", path=Path("/elsewhere.duckdb")),
    (m.Unit, "name"): _part("units", "customer", name="client"),
    (m.Unit, "table"): _part("units", "customer", table="orders"),
    (m.Unit, "key"): _part("units", "customer", key=("city",)),
    (m.Unit, "group_size"): _part("units", "customer", group_size=2),
    (m.Table, "name"): _table(name="sales"),
    (m.Table, "columns"): _table(columns={}),
    (m.Table, "unit"): _table(unit=None),
    (m.Table, "key"): _table(key=("customer_id", "placed")),
    (m.Table, "foreign_keys"): _table(foreign_keys=()),
    (m.Table, "max_rows_per_unit"): _table(max_rows_per_unit=49),
    (m.Table, "max_rows_per_group"): _table(max_rows_per_group=19),
    (m.Table, "path"): lambda p: _table(path=p.tables["orders"].foreign_keys, unit_columns=("customer_id",))(p),
    (m.Table, "unit_columns"): _table(unit_columns=("amount",)),
    (m.Table, "description"): _table(description="others"),
    (m.Table, "account"): _table(account=replace(MORE, epsilon=Fraction(15))),
    (m.Table, "fan_outs"): _table(fan_outs={("amount",): 2}),
    (m.Table, "content"): _table(content=7),
    (m.Table, "computed"): _table(computed=True),
    (m.Column, "name"): _column("orders", "placed", name="day"),
    (m.Column, "declared"): _column("orders", "amount", declared="decimal(12, 2)"),
    (m.Column, "kind"): _column("orders", "amount", kind=Kind.INTEGER),
    (m.Column, "nullable"): _column("orders", "amount", nullable=False),
    (m.Column, "identifier"): _column("orders", "amount", identifier=True),
    (m.Column, "range"): _column("orders", "amount", range=(Fraction(0), Fraction(499))),
    (m.Column, "values"): _column("orders", "channel", values=("web", "shop")),
    (m.Column, "values_from"): _column("customers", "city", values_from=("countries", "country")),
    (m.Column, "extremes"): _column("customers", "age", extremes="measured"),
    (m.Column, "max_length"): _column("customers", "city", max_length=41),
    (m.Column, "description"): _column("customers", "city", description="where they live"),
    (m.Column, "held_as_read"): _column("orders", "amount", held_as_read=False),
    (m.ForeignKey, "columns"): _foreign_key(columns=("amount",)),
    (m.ForeignKey, "references"): _foreign_key(references="visits"),
    (m.ForeignKey, "key"): _foreign_key(key=("age",)),
    (m.ForeignKey, "same_unit"): _foreign_key(same_unit=True),
    (m.View, "name"): lambda p: replace(p, views={**p.views, "old": replace(p.views["adults"], name="old")}),
    (m.View, "sql"): lambda p: replace(
        p, views={"adults": m.View("adults", "SELECT COUNT(*) AS n FROM customers AS c WHERE c.age > 40")}
    ),
    (m.Allowance, "epsilon"): _nested("dataset", epsilon=Fraction(21)),
    (m.Allowance, "delta"): _nested("dataset", delta=Fraction(1, 50_000)),
    (m.Allowance, "composition"): _nested("dataset", composition="basic"),
    (m.Allowance, "per"): _nested("dataset", per="month"),
    (m.QueryLimit, "epsilon"): _role(query=m.QueryLimit(Fraction(1, 20), Fraction(1, 10**8))),
    (m.QueryLimit, "delta"): _role(query=m.QueryLimit(Fraction(1, 10), Fraction(1, 10**9))),
    (m.QueryShare, "share"): _role(query=m.QueryShare(Fraction(1, 50), Fraction(1, 10**8))),
    (m.QueryShare, "delta"): _role(query=m.QueryShare(Fraction(1, 50), Fraction(1, 10**9))),
    (m.Role, "name"): lambda p: replace(p, roles={**p.roles, "guest": replace(p.roles["pure"], name="guest")}),
    (m.Role, "allowance"): _role(allowance=replace(MORE, epsilon=Fraction(15))),
    (m.Role, "session"): _role(session=replace(MORE, epsilon=Fraction(4))),
    (m.Role, "query"): _role(query=m.QueryLimit(Fraction(1, 20), Fraction(1, 10**9))),
    (m.Role, "password"): _role(password="another"),
    (m.Role, "max_groups_per_unit"): _role(max_groups_per_unit=4),
    (m.Role, "search"): _role(search="auto"),
    (m.Role, "mechanisms"): _role(mechanisms=("geometric", "laplace")),
    (m.Role, "tables"): _role(tables=frozenset({"orders", "visits", "customers", "countries", "adults"})),
    (m.Role, "access"): _access(connections=3),
    (m.Role, "owner"): _role(owner=True),
    (m.Access, "may_become"): _access(may_become=frozenset({"pure"})),
    (m.Access, "connections"): _access(connections=3),
    (m.Access, "idle_seconds"): _access(idle_seconds=3),
    (m.Access, "statement_seconds"): _access(statement_seconds=30),
    (m.Access, "message_bytes"): _access(message_bytes=3_000),
    (m.Latency, "seconds"): _whole(latency=m.Latency(0.02)),
    (m.Latency, "fixed"): _whole(latency=m.Latency(0.1, fixed=True)),
    (m.Front, "users"): _nested("front", users=Path("/nobody.users")),
    (m.Front, "preview"): _nested("front", preview="empty"),
    (m.Front, "cleartext"): _nested("front", cleartext=True),
    (m.Front, "bounds"): _bounds(connections=3),
    (m.Front, "database"): _nested("front", database="other"),
    (m.Bounds, "connections"): _bounds(connections=3),
    (m.Bounds, "startup_seconds"): _bounds(startup_seconds=3),
    (m.Bounds, "send_seconds"): _bounds(send_seconds=3),
    (m.Bounds, "idle_seconds"): _bounds(idle_seconds=3),
    (m.Bounds, "message_bytes"): _bounds(message_bytes=3_000),
    (m.Bounds, "memory"): _bounds(memory="9GB"),
    (m.LedgerServer, "dsn"): _whole(ledger_server=replace(SERVER, dsn="host=another")),
    (m.LedgerServer, "schema"): _whole(ledger_server=replace(SERVER, schema="another")),
    (m.LedgerKeeping, "must_exist"): _nested("ledger_keeping", must_exist=True),
    (m.LedgerKeeping, "head"): _nested("ledger_keeping", head=Path("/elsewhere/head")),
    (m.Limits, "max_cells"): _nested("limits", max_cells=50_000),
    (m.Limits, "memory"): _nested("limits", memory="2GB"),
    (m.Limits, "threads"): _nested("limits", threads=2),
    (m.Limits, "timeout_seconds"): _nested("limits", timeout_seconds=30),
    (m.Limits, "strict_timing"): _nested("limits", strict_timing=False),
}  # fmt: skip
"""Each field of the policy, edited."""


def _classes(of: object, known: set[type]) -> set[type]:
    """The data classes that a type is made of."""
    if dataclasses.is_dataclass(of) and isinstance(of, type):
        if of not in known:
            known.add(of)
            for hint in typing.get_type_hints(of).values():
                _classes(hint, known)
    else:
        for part in typing.get_args(of):
            _classes(part, known)
    return known


def test_every_field_is_said_to_shape_answers_or_not_to() -> None:
    assert set(FIELDS) == _classes(Policy, set())
    for listed in FIELDS:
        assert list(FIELDS[listed]) == [f.name for f in dataclasses.fields(listed)], listed
    assert set(EDITS) == {(c, name) for c, fields in FIELDS.items() for name in fields}


def test_a_new_field_has_no_version_until_it_is_listed() -> None:
    made = dataclasses.make_dataclass("Table", [("price", int, 0)], bases=(m.Table,), frozen=True)
    whole = _service_policy()
    orders = made(
        **{f.name: getattr(whole.tables["orders"], f.name) for f in dataclasses.fields(m.Table)}
    )
    new = replace(whole, tables={**whole.tables, "orders": orders})
    for function in (version_of, answers_key):
        with pytest.raises(KeyError):
            function(new)


def _service_policy() -> Policy:
    return load(policy_file("shop", "shop", rich))


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Service, list[Reply]]]:
    """A service that has answered the questions."""
    with Service.open(policy_file("shop", "shop", rich), clock=noon) as service:
        yield service, [service.session("analyst").execute(sql) for sql in QUESTIONS]


def _edited(service: Service, edit: Edit) -> Service:
    """The same source and ledger under an edited policy."""
    written = edit(load(service.policy.path))  # without what the source adds to public tables
    key = answers_key(written)
    policy = replace(edit(service.policy), version=version_of(written), answers_key=key)
    return Service(policy, service._engine, service.ledger, clock=noon)


def _bears(of: type, name: str) -> bool:
    return FIELDS[of][name] is Part.ANSWERS


@pytest.mark.parametrize(("of", "name"), EDITS, ids=lambda part: getattr(part, "__name__", part))
def test_an_edit_voids_stored_answers_where_it_shapes_them(
    asked: tuple[Service, list[Reply]], of: type, name: str
) -> None:
    """What does not shape them leaves each at hand, for nothing; what does, none."""
    (service, before), kept = asked, not _bears(of, name)
    edited = EDITS[of, name](load(service.policy.path))
    assert (answers_key(edited) == service.policy.answers_key) is kept
    try:
        session = _edited(service, EDITS[of, name]).session("analyst")
    except (Error, AssertionError, KeyError):  # the data is not what this edit says
        assert not kept
        return
    planned = of is m.Limits or FIELDS[of][name] is not Part.WORK
    for sql in QUESTIONS if planned else QUESTIONS[:1]:
        assert _stored(session, sql) is (kept and ((of, name), sql) not in _IN_THE_MEASUREMENT), sql
    if kept:
        reply = session.execute(QUESTIONS[4])
        assert (reply.recalled, reply.cost.epsilon, reply.table) == (True, 0, before[4].table)


_IN_THE_MEASUREMENT = {
    ((m.Role, "max_groups_per_unit"), QUESTIONS[1]),
    ((m.QueryShare, "delta"), QUESTIONS[1]),
    ((m.QueryShare, "share"), QUESTIONS[1]),
}
"""A role's limit on groups bounds what a unit adds to private groups, which a delta selects."""


def _stored(session: Any, sql: str) -> bool:
    """Whether nothing would be due; what an edit makes unanswerable is not stored either."""
    try:
        sources = session.sources(session.prepare(sql))
    except (Error, AssertionError, KeyError, ValueError):
        return False
    return sources is not None and not sources.due.parts


def test_versions_of_the_policy_still_tell_terms_apart() -> None:
    """The ledger notes with each query under which terms it was asked."""
    policy = _service_policy()
    for (of, name), edit in EDITS.items():
        changed = version_of(edit(policy)) != policy.version
        assert changed is (FIELDS[of][name] is not Part.WORK), (of, name)


def test_what_a_role_may_not_see_is_not_recalled(asked: tuple[Service, list[Reply]]) -> None:
    """Stored or not: a table that is taken from a role is refused to it."""
    service, _ = asked
    narrow = _edited(service, _role(tables=frozenset({"countries"})))
    for sql in QUESTIONS:
        with pytest.raises(Refused) as caught:
            narrow.session("analyst").execute(sql)
        assert caught.value.code == "DP104"


def test_less_noise_is_still_paid_for(asked: tuple[Service, list[Reply]]) -> None:
    """A higher limit of one query asks for more accuracy: that is due, and no more."""
    service, _ = asked
    edited = _edited(service, _role(query=m.QueryLimit(Fraction(1, 5), Fraction(1, 10**8))))
    sources = edited.session("analyst").sources(edited.session("analyst").prepare(QUESTIONS[0]))
    assert sources is not None
    assert 0 < sources.due.cost.epsilon < Fraction(1, 5)


@pytest.mark.parametrize(
    ("of", "name"), [(m.Column, "range"), (m.Table, "max_rows_per_unit"), (m.Unit, "group_size")]
)
def test_a_field_that_is_listed_wrongly_is_noticed(
    asked: tuple[Service, list[Reply]], of: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        c: {f: Part.TERMS if (c, f) == (of, name) else p for f, p in fields.items()}
        for c, fields in FIELDS.items()
    }
    service, _ = asked
    same = service.policy.answers_key
    monkeypatch.setattr(version, "FIELDS", types.MappingProxyType(wrong))
    assert answers_key(EDITS[of, name](service.policy)) == answers_key(service.policy)
    assert same != answers_key(service.policy)
