"""No check speaks after the bill: whatever the second check refuses, it refuses before the charge.

Each entry of its lists is taken away in turn, which stands for any defect that makes planner and check
disagree, and questions are asked whose statements need it.
"""

from __future__ import annotations

import ast
import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.corpus import SHOP
from support.services import FreeLedger, real_service, service

import dpsql
from dpsql import pipeline
from dpsql.diagnostics.refusal import EngineFailed, NotAdmitted
from dpsql.engines.duckdb import guard as guards
from dpsql.engines.duckdb.allowlist import StatementCheck
from dpsql.engines.duckdb.allowlist.generated import GENERATED
from dpsql.engines.duckdb.groups import write_public
from dpsql.engines.duckdb.guard import (
    Guard,
    Unsafe,
    casts,
    parse_statement,
    statement,
    sums,
    terms,
)
from dpsql.engines.duckdb.guard.facts import Fact
from dpsql.engines.duckdb.guard.parts import Node
from dpsql.engines.duckdb.guarded import Admitted, Guarded
from dpsql.engines.duckdb.statements import list_statements
from dpsql.engines.statement_chooser import StatementChooser
from dpsql.ir.alternatives import Alternative
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import Stored
from dpsql.ir.statements import Query, Read, RowValue
from dpsql.policy.types import Kind
from dpsql.price.priced import PricedPlan
from dpsql.release import finish
from dpsql.service import Service, Session, searching
from dpsql.service import session as sessions
from dpsql.service.plan_cache import PlanCache

W = "OVER (PARTITION BY customer_id ORDER BY seconds)"
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "postgres": (
        "SELECT page, SUM(seconds), AVG(seconds) FROM visits GROUP BY page",
        "SELECT COUNT(*) FROM visits WHERE DATE_BIN('6 hours', started, TIMESTAMP '2024-01-01') < TIMESTAMP '2025-01-01'",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed=1000) page, AVG(seconds) AS mean FROM visits GROUP BY page",
        "SELECT COUNT(DISTINCT page), APPROX_COUNT_DISTINCT(seconds % 60) FROM visits",
        "SELECT MIN(channel), MEDIAN(amount) FROM orders",
        "SELECT MEDIAN(started) FROM visits",
        "SELECT COUNT(*) FROM customers WHERE city LIKE 'a%' AND city ILIKE 'b%' AND city LIKE 'e!%' ESCAPE '!' AND city ILIKE 'f!%' ESCAPE '!'",
        "SELECT COUNT(*) FROM customers WHERE LOWER(city) < UPPER(city) AND TRIM(city) <> LTRIM(city) AND RTRIM(city) <> REPLACE(city, 'a', 'b') AND LEFT(city, 2) <> RIGHT(city, 2) AND SUBSTRING(city, 1, 1) <> city || 'x' AND STARTS_WITH(city, 'a') AND STRPOS(city, 'b') > LENGTH(city)",
        "SELECT COUNT(*) FROM orders WHERE EXP(amount) > LN(amount) AND LOG(amount) > SQRT(amount) AND POWER(amount, 2) > ABS(amount) AND CEIL(amount) > FLOOR(amount) AND TRUNC(amount) > ROUND(amount) AND SIGN(amount) = 1 AND GREATEST(amount, 5) > LEAST(amount, 6)",
        "SELECT COUNT(*) FROM orders WHERE DATE_TRUNC('month', placed) = DATE '2025-01-01' AND TO_CHAR(placed, 'YYYY') = '2025' AND EXTRACT(epoch FROM placed) > 5",
        "SELECT COUNT(*) FROM (SELECT customer_id, MIN(seconds) AS a, MAX(seconds) AS b, AVG(seconds) AS c, STDDEV_POP(seconds) AS d, STDDEV_SAMP(seconds) AS e, VAR_POP(seconds) AS f, VAR_SAMP(seconds) AS g, BOOL_AND(seconds > 5) AS h, BOOL_OR(seconds > 5) AS i, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY seconds) AS j, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY seconds) AS k FROM visits GROUP BY customer_id) AS t WHERE a < b AND c < d AND e < f AND g > 1 AND h AND i AND j < k",
        f"SELECT COUNT(*) FROM (SELECT ROW_NUMBER() {W} AS a, RANK() {W} AS b, DENSE_RANK() {W} AS c, NTILE(4) {W} AS d, PERCENT_RANK() {W} AS e, CUME_DIST() {W} AS f, LAG(seconds) {W} AS g, LEAD(seconds) {W} AS h, FIRST_VALUE(seconds) {W} AS i, LAST_VALUE(seconds) {W} AS j FROM visits) AS x WHERE a < b AND c < d AND e < f AND g < h AND i < j",
        f"SELECT COUNT(*) FROM (SELECT COUNT(*) {W} AS k, COUNT(seconds) {W} AS l, SUM(seconds) {W} AS m, AVG(seconds) {W} AS n, MIN(seconds) {W} AS o, MAX(seconds) {W} AS p FROM visits) AS x WHERE k < l AND m < n AND o < p",
        "SELECT COUNT(DISTINCT country, age) FROM customers",
        "SELECT placed, COUNT(*), SUM(amount) FROM orders GROUP BY placed",
        "SELECT age > 50 AS old, COUNT(*), SUM(CAST(age > 50 AS INTEGER)) FROM customers GROUP BY age > 50",
        "SELECT COUNT(*) FROM customers WHERE country IN (SELECT country FROM countries WHERE population > 80)",
        "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
        "SELECT a.country, a.n, c.population FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) AS a JOIN (SELECT country, LENGTH(country) AS population FROM countries) AS c ON a.country = c.country",
    ),
    "duckdb": (
        "SELECT COUNT(*) FROM visits WHERE date_diff('hour', started, TIMESTAMP '2026-01-01 00:00:00') > 5 AND strftime(started, '%Y') = '2025'",
        "SELECT SUM((age // 50) ** 2) AS n FROM customers",
    ),
}  # fmt: skip
ASKED = [(dialect, sql) for dialect, texts in QUESTIONS.items() for sql in texts]
Part = tuple[str, str]
"""What is listed: of which list, and which entry."""


@functools.cache
def shop() -> Service:
    return service(SHOP.policy, SHOP.data, SHOP.change)


def asking(here: Service, dialect: str = "postgres", search: str = "off") -> Session:
    """A session that finds nothing in any memory: no plan, and no statement that was let through."""
    here.plans = PlanCache()
    here.tools.postprocessor._bound.clear()
    here.tools.engine._guard = Guard(here.policy, here.shelf, here._engine.is_empty)
    session = here.session(next(iter(here.policy.roles)))
    session.execute(f"SET dpsql.dialect = '{dialect}'")
    session.execute(f"SET dpsql.search = {search}")
    return session


class Noting(frozenset[tuple[str, str]]):
    """The sure casts, which note those that were needed."""

    found: set[Part]

    def __contains__(self, pair: object) -> bool:
        there = super().__contains__(pair)
        if there:
            self.found.add(("cast", f"{pair}"))
        return there


def parts_of(node: object) -> Iterator[Part]:
    """Functions, windows, relation forms and classes of expressions in a syntax tree."""
    if isinstance(node, list):
        for child in node:
            yield from parts_of(child)
    elif isinstance(node, dict):
        if "class" in node and "alias" in node:
            yield "class", node["class"]
            name = node.get("function_name", "")
            if name:
                yield ("window" if node["class"] == "WINDOW" else "function"), name
        elif "sample" in node and "alias" in node:
            yield "relation", node["type"]
        for child in node.values():
            yield from parts_of(child)


def needed(plan: PricedPlan) -> set[Part]:
    """What of the lists the statements of a plan need."""
    guard, found = Guard(shop().policy), set[Part]()
    sure = Noting(casts.SURE)
    sure.found = found
    texts = [(list_statements(p)[0].sql, False) for p in plan.parts] + [
        (write_public(q), True) for q in plan.plan.publics
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(casts, "SURE", sure)
        for sql, over_public in texts:
            guard.check(sql, over_public=over_public)
            found |= set(parts_of(parse_statement(sql)))
    return found


@functools.cache
def users() -> Mapping[Part, tuple[str, str]]:
    """For each part the shortest question that needs it."""
    found: dict[Part, tuple[str, str]] = {}
    for dialect, sql in sorted(ASKED, key=lambda pair: -len(pair[1])):
        for part in needed(asking(shop(), dialect).prepare(sql)):
            found[part] = dialect, sql
    return found


@contextmanager
def without(part: Part) -> Iterator[None]:
    """The second check with one entry of its lists taken away."""
    kind, name = part
    with pytest.MonkeyPatch.context() as patch:
        if kind == "function":
            for listed in (terms.TOTAL, terms.TRIED, sums.AGGREGATES):
                patch.delitem(listed, name, raising=False)
            patch.setattr(terms, "_ARITHMETIC", tuple(n for n in terms._ARITHMETIC if n != name))
        elif kind == "window":
            patch.delitem(terms._WINDOWS, name)
        elif kind == "cast":
            patch.setattr(casts, "SURE", frozenset(p for p in casts.SURE if f"{p}" != name))
        elif kind == "class":
            patch.delitem(terms._HANDLERS, name, raising=False)
        else:
            patch.setattr(statement._Walk, "_from", _but(name, statement._Walk._from))
        yield


def _but(form: str, read: Callable[[object, Node], object]) -> Callable[[object, Node], object]:
    def refusing(walk: object, node: Node) -> object:
        if node["type"] == form:
            raise Unsafe(f"a FROM item of type {form}")
        return read(walk, node)

    return refusing


def paid_or_answered(session: Session, sql: str, here: Service) -> list[str]:
    """What went wrong with a question that cannot be admitted: it was answered, or charged."""
    ledger = here.ledger
    assert isinstance(ledger, FreeLedger)
    before, wrong = len(ledger.charges), []
    for way in ("EXPLAIN ", ""):
        try:
            session.execute(way + sql)
        except EngineFailed as failed:
            if (failed.code, type(failed)) != ("DP901", NotAdmitted):
                wrong.append(f"{way}{sql}: {failed}")
        else:
            wrong.append(f"{way}{sql}: answered")
        if len(ledger.charges) > before:
            wrong.append(f"{way}{sql}: charged")
    return wrong


KINDS = {
    "function": (*terms.TOTAL, *terms.TRIED, *sums.AGGREGATES, *terms._ARITHMETIC),
    "window": tuple(terms._WINDOWS),
    "cast": tuple(map(str, casts.SURE)),
    "relation": ("BASE_TABLE", "SUBQUERY", "JOIN", "EXPRESSION_LIST", "TABLE_FUNCTION"),
    "class": tuple(terms._HANDLERS),
}
REACHED = {"function": 60, "window": 15, "cast": 3, "relation": 5, "class": 9}
"""So many entries of each list the questions reach; the rest is for statements seldom written."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_admitted_is_not_charged(kind: str) -> None:
    wrong, tried = [], 0
    for name in KINDS[kind]:
        dialect, sql = users().get((kind, name), ("", ""))
        if sql:
            session = asking(shop(), dialect)
            with without((kind, name)):
                wrong += [f"{kind} {name}: {w}" for w in paid_or_answered(session, sql, shop())]
            tried += 1
    assert not wrong, "\n".join(wrong)
    assert tried >= REACHED[kind]


SECOND_PHASE = (
    "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders) AND LOWER(channel) = 'web'",
    "SELECT channel, COUNT(*) FROM orders WHERE channel IN (SELECT channel FROM orders GROUP BY channel HAVING COUNT(*) > 5) AND LOWER(channel) = 'web' GROUP BY channel",
)


@pytest.mark.parametrize("sql", SECOND_PHASE)
def test_a_second_phase_is_admitted_before_the_first_is_charged(sql: str) -> None:
    session = asking(shop())
    assert len(session.prepare(sql).parts) == 2
    assert session.execute(sql).tag == "SELECT"
    shop().ledger.charges.clear()  # type: ignore[attr-defined]
    session = asking(shop())
    with without(("function", "lower")):
        assert not paid_or_answered(session, sql + " -- again", shop())


def test_public_rows_are_admitted_before_the_charge() -> None:
    sql = QUESTIONS["postgres"][-1]
    assert any("length" in write_public(q) for q in asking(shop()).prepare(sql).plan.publics)
    session = asking(shop())
    with without(("function", "length")):
        assert not paid_or_answered(session, sql, shop())


SEARCHED = "SELECT channel, SUM(amount) FROM orders GROUP BY channel"


def test_a_searched_question_is_admitted_before_its_search_is_charged() -> None:
    """Whatever the search's own statement needs, or the answer's under a bound that may be found."""
    base = asking(shop(), search="on").prepare(SEARCHED)
    (search,) = base.searches
    wanted = needed(base) | needed(search.priced)
    for found in pipeline.search.extremes(base):
        wanted |= needed(found)
    tried = [(k, n) for k, n in wanted if k in ("function", "cast") and n in KINDS[k]]
    assert {("function", n) for n in ("greatest", "abs", "list", "struct_pack")} <= set(tried)
    for part in tried:
        session = asking(shop(), search="on")
        with without(part):
            assert not paid_or_answered(session, SEARCHED, shop()), part


ONE = "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel"
TWO = "SELECT channel, COUNT(*) AS n, COUNT(*) FILTER (WHERE amount > 250) AS m FROM orders GROUP BY channel"


def answered_in_part(search: str) -> tuple[Service, Session, PricedPlan, str]:
    """A service that has stored ONE, the plan of TWO, and the statement for the rest of TWO.

    What was found by the search is gone: a store keeps only so much. So it is paid once more.
    """
    here = service("oracle", "shop")
    session, ledger = asking(here, search=search), here.ledger
    assert isinstance(ledger, FreeLedger)
    session.execute(ONE)
    plan = session.prepare(TWO)
    sources = pipeline.match(plan, here.policy.answers_key, here.tools)
    [rest], families = sources.due.parts, {source.piece.family for source in sources.pieces}
    assert list_statements(rest.priced)[0].sql != list_statements(plan.parts[0])[0].sql, (
        "it is a statement of its own"
    )
    ledger.kept[:] = [kept for kept in ledger.kept if kept.key.family in families]
    ledger.charges.clear()
    return here, session, plan, list_statements(rest.priced)[0].sql


@contextmanager
def refusing(refused: str) -> Iterator[None]:
    """The second check as if one statement did not pass."""
    real = Guard.check

    def check(guard: Guard, sql: str, **named: Any) -> None:
        if sql == refused:
            raise Unsafe("planted")
        real(guard, sql, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Guard, "check", check)
        yield


@pytest.mark.parametrize("search", ["off", "on"])
def test_where_the_rest_of_an_answer_is_not_admitted_all_is_measured(search: str) -> None:
    """A search that was paid is answered, and nobody pays more than the plan says."""
    here, session, plan, rest = answered_in_part(search)
    ledger = here.ledger
    assert isinstance(ledger, FreeLedger)
    with refusing(rest):
        if search == "off":
            assert "to pay" not in session.explain(TWO), "nothing that is stored is used"
        reply = session.execute(TWO)
    assert reply.table.num_rows == 4
    assert len(ledger.charges) == (2 if search == "on" else 1)
    assert ledger.charges[-1] == plan.cost
    here, session, plan, _ = answered_in_part(search)
    session.execute(TWO)
    assert here.ledger.charges[-1].epsilon < plan.cost.epsilon  # type: ignore[attr-defined]


def test_a_refusal_behind_a_paid_search_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was once: the statement for the rest was refused when the search was paid."""
    monkeypatch.setattr(
        pipeline, "admit_sources",
        lambda _, sources, tools: (sources, pipeline._statements(sources, tools)),
    )  # fmt: skip
    here, session, _, rest = answered_in_part("on")
    with refusing(rest), pytest.raises(NotAdmitted):
        session.execute(TWO)
    assert len(here.ledger.charges) == 1  # type: ignore[attr-defined]


POSTPROCESSED = (
    ("count_star", "SELECT COUNT(*) FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) AS t WHERE n > 5"),
    ("upper", "SELECT UPPER(channel), COUNT(*) FROM orders GROUP BY channel"),
    ("rank", "SELECT channel, RANK() OVER (ORDER BY COUNT(*)) AS r FROM orders GROUP BY channel"),
    ("avg", "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(n) FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) AS t)"),
    ("quantile_cont", "SELECT SUM(amount) / COUNT(*) AS mean FROM orders"),
    ("sqrt", "SELECT SQRT(COUNT(*)) AS s, DP_INTERVAL_LOW(SQRT(COUNT(*))) AS l FROM orders"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "sql"), POSTPROCESSED)
def test_post_processing_is_admitted_before_the_charge(
    name: str, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look-ups, the analyst's own SQL over released tables, and the simulation of its intervals."""
    session, postprocessor = asking(shop()), shop().tools.postprocessor
    session.execute("SET dpsql.intervals = on")
    session.execute(sql)
    session = asking(shop())
    session.execute("SET dpsql.intervals = on")
    kept = {kind: getattr(GENERATED, kind) - {name} for kind in ("functions", "windows")}
    monkeypatch.setattr(postprocessor, "_check", StatementCheck(replace(GENERATED, **kept)))
    shop().ledger.released.clear()  # type: ignore[attr-defined]
    assert not paid_or_answered(session, sql, shop())
    monkeypatch.setattr(pipeline, "dry_run", lambda *_: None)
    assert any("charged" in wrong for wrong in paid_or_answered(asking(shop()), sql, shop()))


def test_a_dry_run_binds_what_will_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in a writer that only the engine notices costs nothing either."""
    monkeypatch.setattr(finish, "write_output", lambda *_: "SELECT upper(no_such_column) FROM m0")
    assert not paid_or_answered(asking(shop()), POSTPROCESSED[1][1], shop())


def test_a_search_that_is_paid_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were only the plan under the bound that was found refused, that of the policy answers."""
    here = service(SHOP.policy, SHOP.data, SHOP.change)
    session, admit = asking(here, search="on"), pipeline.admit
    base = session.prepare(SEARCHED)

    def refusing(plan: PricedPlan, tools: pipeline.Tools) -> None:
        if not plan.searches:
            raise NotAdmitted("0")
        admit(plan, tools)

    monkeypatch.setattr(searching, "admit", refusing)
    reply = session.execute(SEARCHED)
    assert reply.cost.epsilon == base.price.epsilon
    assert reply.table.num_rows == 4


def test_a_check_after_the_charge_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was once: statements are looked at when they run."""
    monkeypatch.setattr(Guarded, "admit", lambda _, statement: Admitted(statement.relation))
    monkeypatch.setattr(Guarded, "admit_public", lambda *_: None)
    here = service(SHOP.policy, SHOP.data, SHOP.change)
    for part, sql, search in (
        (("function", "sum"), QUESTIONS["postgres"][0], "off"),
        (("function", "lower"), SECOND_PHASE[0], "off"),
        (("function", "greatest"), SEARCHED, "on"),
    ):
        session = asking(here, search=search)
        with without(part):
            assert any("charged" in w for w in paid_or_answered(session, sql, here))


def test_explain_without_admission_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "admit", lambda *_: None)
    session = asking(shop())
    with ExitStack() as stack:
        stack.enter_context(without(("function", "length")))
        assert any(
            "answered" in w for w in paid_or_answered(session, QUESTIONS["postgres"][-1], shop())
        )


def test_the_books_have_no_entry() -> None:
    with real_service("shop", "shop") as here:
        session = asking(here)
        budget, records = session.budget(), here.ledger.latest(9)
        with without(("function", "sum")):
            for way in ("", "EXPLAIN "):
                with pytest.raises(NotAdmitted, match="nothing was charged"):
                    session.execute(way + "SELECT SUM(amount) FROM orders")
        assert session.budget() == budget
        assert here.ledger.latest(9) == records


def _read(table: str) -> Query:
    """The addresses in a table, or what it may be."""
    email = Column(0, "email", Shape(Kind.TEXT))
    return Read(Stored(table, (email,)), (("p0", RowValue(email)),))


def test_an_alternative_that_does_not_pass_leaves_the_own_relation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Which alternative may run is known from the data, so that no refusal may come of it."""
    here = service("oracle", "shop")
    elsewhere = Alternative((), _read("elsewhere"))
    monkeypatch.setattr(StatementChooser, "choose", lambda *_: elsewhere)
    with caplog.at_level(logging.ERROR, "dpsql.operator"):
        reply = asking(here).execute("SELECT COUNT(*) AS n FROM orders")
    assert reply.table.column(0)[0].as_py() > 1000
    assert "elsewhere" in caplog.text


@pytest.mark.parametrize("holds", [True, False])
def test_whether_a_statement_is_admitted_depends_on_no_data(holds: bool) -> None:
    """Own statements pass by their text alone, whatever was found when the data was opened."""
    here = service(SHOP.policy, SHOP.data, SHOP.change)
    session = asking(here)
    here.tools.engine._guard = Guard(here.policy, here.shelf, lambda _: holds)
    for dialect, sql in ASKED:
        session.execute(f"SET dpsql.dialect = '{dialect}'")
        session.execute("EXPLAIN " + sql)
        for part in session.prepare(sql).parts:
            here.tools.engine._guard.check(list_statements(part)[0].sql, by_text=True)


def test_what_passes_by_its_data_does_not_pass_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement is walked once for each of both; what passed with the data is no word for the text."""
    here = service("oracle", "shop")
    guard, walks = Guard(here.policy, here.shelf, lambda _: True), list[str]()

    def measured(tree: object, tables: object, *, steady: bool, few: object = None) -> None:
        walks.append("text" if few is None else "data")
        if few is None:
            raise Unsafe("by its text alone")

    monkeypatch.setattr(guards, "check_measurement", measured)
    monkeypatch.setattr(guard._seen, "of", lambda _, tables: (tables, ()))
    sql = "SELECT count(*) AS p0 FROM orders"
    guard.check(sql)
    guard.check(sql)
    assert walks == ["text", "data"], "the second time it is known"
    with pytest.raises(Unsafe):
        guard.check(sql, by_text=True)


def test_a_probe_asks_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = shop().tools.engine
    asked: list[str] = []
    monkeypatch.setattr(type(engine._engine), "read_public", lambda _, sql: asked.append(sql))
    engine.probe()
    assert len(asked) == 1


def test_a_forged_statement_does_not_run() -> None:
    engine = shop().tools.engine
    with pytest.raises(EngineFailed, match="could not finish"):
        engine.measure(Admitted(_read("customers")), {})


def test_only_the_guard_says_that_a_statement_is_admitted() -> None:
    makers = set()
    root = Path(dpsql.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Admitted":
                makers.add(path.relative_to(root).as_posix())
    assert makers == {"engines/duckdb/guarded.py"}


@pytest.mark.parametrize(
    "value",
    [
        "ABS((age IN (SELECT population FROM countries))::integer)",
        "-(age NOT IN (SELECT population FROM countries))::integer",
        "CAST(age IN (SELECT population FROM countries) AS decimal(10, 2))",
    ],
)
def test_what_the_engine_does_not_bind_is_not_charged(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subquery inside TRY is refused by the engine, for whatever data: it must not be paid."""
    with real_service("shop", "shop") as opened:
        asked = opened.session("analyst")
        sql = f"SELECT SUM({value}) FROM customers"
        before = asked.budget()
        for ask in (asked.explain, asked.execute):
            with pytest.raises(NotAdmitted):
                ask(sql)
        assert asked.budget() == before
        monkeypatch.setitem(terms._HANDLERS, "SUBQUERY", _trusting)
    with real_service("shop", "shop") as opened:
        asked = opened.session("analyst")
        before = asked.budget()
        with pytest.raises(EngineFailed):
            asked.execute(sql)
        assert asked.budget() != before


def _trusting(self: terms.Terms, node: Node) -> Fact:
    return terms.Terms.of_subquery(replace(self, tried=False), node)
