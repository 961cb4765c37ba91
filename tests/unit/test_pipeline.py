"""The line's effects: what is charged when, what is recalled, and what a failure may say."""

from __future__ import annotations

import copy
import itertools
import logging
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import TracebackType

import pyarrow as pa
import pytest
from support.datasets import database, in_memory
from support.services import FreeLedger, Seeded, SpyEngine, noon, policy, real_service, service

from dpsql import pipeline
from dpsql.diagnostics.refusal import EngineFailed, LedgerFailed, Refused
from dpsql.engines.exact_rows import ExactRows, unseal
from dpsql.engines.facts import Facts
from dpsql.ledger.store import Note
from dpsql.pipeline import Payer, answer
from dpsql.reuse import cached
from dpsql.reuse.single_flight import SingleFlight
from dpsql.service import Service

SECRET = "alice-7391"
QUOTED = "c1@example.org"
"""What a failing cast of the data would quote."""
COUNT = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"
CITIES = "SELECT city, COUNT(*) FROM customers GROUP BY city"


class Spied:
    """A service all of whose effects are written down in one list, in order."""

    def __init__(
        self, rows: Callable[[str], pa.Table], failing: frozenset[str] = frozenset()
    ) -> None:
        self.calls: list[str] = []
        self.ledger = FreeLedger(self.calls, failing=failing)
        self.engine = SpyEngine(rows, self.calls)
        self.service = Service(
            policy("shop", "shop"), self.engine, self.ledger, clock=noon,
            entropy=Seeded(1, self.calls), facts=Facts(),
        )  # fmt: skip
        self.session = self.service.session("analyst")

    def run(self, sql: str) -> object:
        return self.session.execute(sql)

    def order(self) -> list[str]:
        """The calls, with repetitions as one."""
        return [name for name, _ in itertools.groupby(self.calls)]


def channels(*_: str) -> pa.Table:
    return pa.table({"k0": ["phone", "shop", "web", None], "p0": [1, 2, 3, 4]})


def failing(*_: str) -> pa.Table:
    raise EngineFailed("11111111")


def test_the_charge_is_durable_before_the_engine_is_called() -> None:
    spied = Spied(channels)
    spied.run(COUNT)
    assert spied.order() == ["recall", "reserve started", "measure", "entropy", "commit"]


NAMING = ("pieces", "load_related")
STAGES = (
    "match_stored", "admit_sources", "_reserve", "noise", "merge", "finish",
)  # fmt: skip


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> Spied:
    """A service whose stages are in the list of its effects; the question is planned already."""
    spied = Spied(channels)
    spied.session.prepare(COUNT)
    for stage in NAMING:
        monkeypatch.setattr(cached, stage, noting(stage, getattr(cached, stage), spied.calls))
    for stage in STAGES:
        monkeypatch.setattr(pipeline, stage, noting(stage, getattr(pipeline, stage), spied.calls))
    return spied


def noting(stage: str, real: Callable[..., object], calls: list[str]) -> Callable[..., object]:
    def called(*values: object, **named: object) -> object:
        calls.append(stage)
        return real(*values, **named)

    return called


LINE = [
    "pieces", "load_related", "recall", "match_stored", "admit_sources", "_reserve",
    "reserve started", "measure", "noise", "entropy", "merge", "commit", "finish",
]  # fmt: skip


def test_a_paid_query_visits_each_stage_once(visited: Spied) -> None:
    visited.run(COUNT)
    assert visited.order() == LINE


BESIDE = (
    "SELECT a.country, a.n, c.population FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country)"
    " AS a JOIN countries AS c ON a.country = c.country"
)


def test_a_paid_query_reads_a_public_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, calls = service("shop", "shop"), list[str]()
    session, engine = opened.session("analyst"), opened.tools.engine
    session.prepare(BESIDE)
    monkeypatch.setattr(engine, "read_public", noting("read", engine.read_public, calls))
    reply = session.execute(BESIDE)
    assert reply.table.num_rows > 1
    assert not reply.recalled
    assert calls == ["read"]


def test_a_stage_that_is_visited_twice_is_counted(
    visited: Spied, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was once: the store was looked through before and behind the turn at a question."""
    hold = SingleFlight.hold
    monkeypatch.setattr(SingleFlight, "hold", lambda self, question, _: hold(self, question, -1))
    visited.run(COUNT)
    assert visited.order() != LINE
    assert visited.calls.count("match_stored") == 2


def test_a_recalled_answer_visits_only_the_store(visited: Spied) -> None:
    visited.run(COUNT)
    visited.calls.clear()
    visited.run(COUNT)
    assert visited.order() == ["load_related", "recall", "match_stored", "merge", "finish"]
    visited.calls.clear()
    visited.run(COUNT)
    assert visited.order() == ["load_related", "recall"], "its rows are cached"


def test_the_salt_is_drawn_after_the_charge_and_new_each_time() -> None:
    spied = Spied(lambda _: pa.table({"k0": ["a"], "p0": [9], "units": [9]}))
    by_city = "SELECT city, COUNT(*) FROM customers JOIN orders USING (customer_id) GROUP BY city"
    spied.run("SET dpsql.fresh = on")
    spied.run(by_city)
    spied.run(by_city)
    salts = [p["salt"] for p in spied.engine.parameters]
    assert len(set(salts)) == 2
    assert spied.order()[:3] == ["reserve started", "entropy", "measure"]


def test_an_engine_failure_keeps_the_charge_and_forfeits_the_hold() -> None:
    spied = Spied(failing)
    with pytest.raises(EngineFailed):
        spied.run(COUNT)
    assert spied.order() == ["recall", "reserve started", "measure", "forfeit"]
    assert len(spied.ledger.charges) == 1


def test_an_interrupt_forfeits_too() -> None:
    def interrupted(*_: str) -> pa.Table:
        raise KeyboardInterrupt

    spied = Spied(interrupted)
    with pytest.raises(KeyboardInterrupt):
        spied.run(COUNT)
    assert spied.order()[-1] == "forfeit"


def test_a_ledger_that_cannot_forfeit_hides_nothing() -> None:
    spied = Spied(failing, frozenset({"forfeit"}))
    with pytest.raises(EngineFailed):
        spied.run(COUNT)


@pytest.mark.parametrize("call", ["reserve started", "recall"])
def test_without_a_ledger_the_engine_is_not_called(call: str) -> None:
    spied = Spied(channels, frozenset({call}))
    with pytest.raises(LedgerFailed):
        spied.run(COUNT)
    assert "measure" not in spied.calls


def test_an_answer_that_cannot_be_noted_does_not_leave() -> None:
    spied = Spied(channels, frozenset({"commit"}))
    with pytest.raises(LedgerFailed):
        spied.run(COUNT)


REFUSED = (
    "SELECT * FROM orders",
    "SELECT MAX(secret) FROM orders",
    "SELECT COUNT(*) FROM secrets",
    "SELECT SUM(customer_id) FROM orders",
    "SELECT 1 FROM",
    "DROP TABLE orders",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_refused_queries_reach_neither_engine_nor_ledger(sql: str) -> None:
    spied = Spied(channels)
    for text in (sql, f"EXPLAIN {sql}"):
        with pytest.raises(Refused):
            spied.run(text)
    assert spied.calls == []


def test_explain_reads_nothing_and_spends_nothing() -> None:
    spied = Spied(failing)
    spied.run(f"EXPLAIN {COUNT}")
    spied.session.explain(CITIES)
    spied.session.prepare(COUNT)
    assert set(spied.calls) == {"recall"}, "only what EXPLAIN says would be recalled"


WRONG = {
    "too few groups": pa.table({"k0": ["web"], "p0": [7391]}),
    "a NULL": pa.table({"k0": ["phone", "shop", "web", None], "p0": [1, 2, 3, None]}),
    "a fraction": pa.table({"k0": ["phone", "shop", "web", None], "p0": [1.5, 2, 3, 7391.25]}),
    "a text": pa.table({"k0": ["phone", "shop", "web", None], "p0": ["1", "2", "3", SECRET]}),
    "no such column": pa.table({"k0": ["phone", "shop", "web", SECRET]}),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_answers_of_an_engine_are_engine_failures(what: str) -> None:
    spied = Spied(lambda _: WRONG[what])
    with pytest.raises(EngineFailed) as caught:
        spied.run(COUNT)
    assert spied.order()[-1] == "forfeit"
    assert_no_secret(caught.value)


def test_keys_of_another_type_are_engine_failures() -> None:
    table = pa.table({"k0": [SECRET] * 3, "p0": [50, 60, 70], "units": [500, 600, 700]})
    spied = Spied(lambda _: table)
    with pytest.raises(EngineFailed) as caught:
        spied.run("SELECT customer_id * 2 AS k, COUNT(*) FROM customers GROUP BY 1")
    assert spied.order()[-1] == "forfeit"
    assert_no_secret(caught.value)


def errors(error: BaseException) -> Iterator[BaseException]:
    """The error, and all that it was raised from or during."""
    seen: list[BaseException] = []
    ahead: list[BaseException | None] = [error]
    while ahead:
        found = ahead.pop()
        if found is not None and found not in seen:
            seen.append(found)
            ahead += [found.__cause__, found.__context__]
    yield from seen


def assert_no_secret(error: BaseException) -> None:
    """No text of the engine in the error, its context, or the variables of its frames."""
    for found in errors(error):
        for secret in (SECRET, QUOTED, "7391"):
            assert secret not in f"{found} {found!r}"
        trace: TracebackType | None = found.__traceback__
        while trace is not None:
            if "/dpsql/" in trace.tb_frame.f_code.co_filename:
                for name, value in trace.tb_frame.f_locals.items():
                    where = f"{trace.tb_frame.f_code.co_name}: {name}"
                    assert SECRET not in repr(value), where
                    assert QUOTED not in repr(value), where
            trace = trace.tb_next


def test_an_engine_that_fails_in_a_later_part_says_the_same() -> None:
    """Rows were read by then, and some of them have noise: none is in the error."""
    table = pa.table({"k0": ["phone", "shop"], "p0": [7391, 7391]})

    def parts() -> Iterator[pa.Table]:
        yield table
        raise EngineFailed("12345678")

    spied = Spied(lambda _: parts())  # type: ignore[arg-type,return-value]
    with pytest.raises(EngineFailed, match="12345678") as caught:
        spied.run("SELECT channel, COUNT(*) FROM orders GROUP BY channel")
    assert spied.order()[-1] == "forfeit"
    assert_no_secret(caught.value)


def test_an_engine_error_says_the_same_whatever_happened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = service("shop", "shop")._engine
    texts = set()
    failing = (
        "SELECT CAST(email AS INTEGER) FROM customers ORDER BY customer_id",
        "SELECT error(email) FROM customers",
        "SELECT * FROM nothing",
        "SELECT 1 +",
    )
    with caplog.at_level(logging.ERROR, "dpsql.operator"):
        for sql in failing:
            for call in (lambda s: engine.measure(s, {}), engine.read_public):
                with pytest.raises(EngineFailed) as caught:
                    call(sql)
                assert_no_secret(caught.value)
                texts.add(str(caught.value).replace(caught.value.incident, "#"))
    assert len(texts) == 1
    assert QUOTED not in caplog.text, "not even the operator's log quotes rows"
    assert 'kind="Conversion Error" statement="SELECT CAST(email' in caplog.text, "find the cause"


def test_a_failing_postprocessor_says_the_same(caplog: pytest.LogCaptureFixture) -> None:
    tools = service("shop", "shop").tools
    email = pa.table({"email": [QUOTED]})
    with caplog.at_level(logging.CRITICAL), pytest.raises(EngineFailed) as caught:
        tools.postprocessor.run("SELECT CAST(email AS INTEGER) FROM m0", {"m0": email})
    for found in errors(caught.value):
        assert QUOTED not in str(found)


def test_a_query_past_its_deadline_is_an_engine_failure() -> None:
    opened = service("shop", "shop", lambda t: t + "limits: {timeout_seconds: 1}\n")
    with pytest.raises(EngineFailed):
        opened._engine.measure(
            "SELECT sum(a.range + b.range) FROM range(1000000) a, range(1000000) b", {}
        )
    assert opened._engine.read_public("SELECT 1 AS one").num_rows == 1


def test_exact_rows_are_sealed() -> None:
    rows = ExactRows(pa.table({"p0": [7391]}))
    assert "7391" not in f"{rows} {rows!r} {rows!s} {[rows]}"
    attempts: list[Callable[[], object]] = [
        lambda: pickle.dumps(rows), lambda: copy.copy(rows), lambda: copy.deepcopy(rows),
        lambda: list(rows), lambda: rows == rows, lambda: rows != rows, lambda: hash(rows),
        lambda: {rows}, lambda: rows < rows, lambda: len(rows), lambda: rows[0],  # type: ignore[index]
        lambda: vars(rows), lambda: bool(rows == 1),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(TypeError):
            attempt()
    assert next(unseal(rows)).num_rows == 1


RENAMED = (
    "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
    "SELECT channel AS c, COUNT(*) AS n FROM orders AS o GROUP BY 1 ORDER BY n DESC LIMIT 10",
    "select o.channel, count(*) from public.orders o group by channel having count(*) > -1e6 order by 1",
    "SELECT t.c, t.n FROM (SELECT channel AS c, COUNT(*) AS n FROM orders GROUP BY channel) AS t",
    "WITH t AS (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) SELECT * FROM t",
)


def test_an_equal_plan_is_recalled_with_the_same_numbers() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        first = session.execute(RENAMED[0])
        assert first.cost.epsilon == Fraction(1, 10)
        assert not first.recalled
        spent = session.budget()
        for sql in RENAMED:
            again = session.execute(sql)
            assert again.recalled, sql
            assert again.cost.epsilon == 0
            assert _set(again.table) == _set(first.table)
        assert session.budget() == spent
        other = opened.session("analyst", "another")
        assert other.execute(COUNT).recalled


def _set(table: pa.Table) -> set[tuple[object, ...]]:
    return set(zip(*(c.to_pylist() for c in table.columns), strict=True))


def test_fresh_pays_again() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        first = session.execute(COUNT)
        session.execute("SET dpsql.fresh = on")
        second = session.execute(COUNT)
        assert (second.recalled, second.cost) == (False, first.cost)
        assert second.table != first.table
        session.execute("RESET dpsql.fresh")
        assert session.execute(COUNT).table == second.table, "the last release is recalled"


def test_a_better_answer_serves_a_worse_request_and_never_the_other_way_round() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        session.execute("SET dpsql.epsilon = 0.05")
        worse = session.execute(COUNT)
        session.execute("RESET dpsql.epsilon")
        better = session.execute(COUNT)
        assert not worse.recalled
        assert not better.recalled
        for setting in ("epsilon = 0.05", "epsilon = 0.01", "mechanism = 'gaussian'"):
            session.execute(f"SET dpsql.{setting}")
            again = session.execute(COUNT)
            assert again.recalled
            assert again.table == better.table
        assert not session.execute(
            "SELECT channel, COUNT(*) FROM orders WHERE amount > 1 GROUP BY 1"
        ).recalled


def test_a_recalled_release_has_the_types_of_its_own_plan() -> None:
    """A sum of whole numbers and the centred one of AVG may be the same statement."""
    wide = "SELECT SUM(x) AS s, COUNT(x) AS n FROM (SELECT (age - 59) * 100000 AS x FROM customers) AS t"
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        for sql in (wide, wide.replace("SUM(x)", "AVG(x)"), wide):
            reply = session.execute(sql)
            assert str(reply.table.schema.types[0]) == ("double" if "AVG" in sql else "int64")


def test_public_queries_are_free_and_unnoted() -> None:
    opened = service("shop", "shop")
    assert isinstance(opened.ledger, FreeLedger)
    reply = opened.session("analyst").execute("SELECT country FROM countries ORDER BY 1 LIMIT 1")
    assert reply.table.to_pydict() == {"o0": ["at"]}
    assert opened.ledger.calls == []


SHAPED = (
    COUNT,
    CITIES,
    "SELECT country, AVG(age), SUM(age), STDDEV(age) FROM customers GROUP BY country",
    "SELECT COUNT(*), SUM(amount), AVG(amount) FROM orders",
    "SELECT placed, COUNT(DISTINCT customer_id) FROM orders GROUP BY placed",
    "SELECT city, AVG(age) AS mean FROM customers GROUP BY city ORDER BY mean LIMIT 3",
    "SELECT n, COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS t GROUP BY n",
    "SELECT DATE_TRUNC('month', started) AS m, MAX(n) FROM (SELECT started, COUNT(*) AS n FROM visits GROUP BY started) AS t GROUP BY 1",
)


@pytest.fixture(scope="module")
def emptied() -> Service:
    """The shop without a single private row."""
    path = database("empty")
    assert path.exists()
    return service("shop", "empty", seed=3)


@pytest.mark.parametrize("sql", SHAPED)
def test_names_and_types_do_not_depend_on_data(sql: str, emptied: Service) -> None:
    some = service("shop", "dirty", seed=3).session("analyst").execute(sql)
    none = emptied.session("analyst").execute(sql)
    assert some.columns == none.columns
    assert some.table.schema == none.table.schema


def test_the_order_of_rows_does_not_depend_on_the_data() -> None:
    """Thresholded groups come in key order, wherever their rows are stored."""
    connection = in_memory("shop")
    cities = connection.sql(
        "SELECT city AS k0, count(*) AS p0, count(*) AS units FROM customers GROUP BY 1"
    )
    for order in ("k0", "k0 DESC", "p0"):
        table = cities.order(order).to_arrow_table()
        spied = Spied(lambda _, found=table: found)
        spied.session.execute("SET dpsql.epsilon = 0.1")
        reply = spied.session.execute(CITIES)
        names = reply.table.column(0).to_pylist()
        assert names == sorted(names)
        assert names


TWO_PHASES = (
    "SELECT SUM(amount) / COUNT(*) AS r FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
    (
        "SELECT country, COUNT(*) * 2 AS h FROM customers WHERE country IN"
        " (SELECT country FROM customers GROUP BY country HAVING COUNT(*) > 185) GROUP BY country"
    ),
    "SELECT channel, COUNT(*) * 2 AS h FROM orders WHERE channel = 'nothing' GROUP BY channel",
    "SELECT country, COUNT(*) * 2 AS h FROM customers GROUP BY 1 HAVING COUNT(*) > 9 ORDER BY h LIMIT 3",
    "SELECT c, h FROM (SELECT country AS c, COUNT(*) * 2 AS h FROM customers GROUP BY 1) AS t WHERE h > 9 ORDER BY c",
)


@pytest.mark.parametrize("sql", TWO_PHASES)
def test_computed_columns_have_intervals_whatever_was_released_before(sql: str) -> None:
    session = service("shop", "shop").session("pure")
    reply = session.execute(sql, intervals=True)
    position = len(reply.columns) - 1
    low, high = (end.to_pylist() for end in reply.intervals[position])
    for bottom, value, top in zip(low, reply.table.column(position).to_pylist(), high, strict=True):
        assert bottom <= value <= top


SETTLED = {
    "SELECT COUNT(*) AS n FROM customers WHERE EXISTS (SELECT 1 FROM countries WHERE population > 1000)": 2000,
    "SELECT COUNT(*) AS n FROM customers WHERE EXISTS (SELECT 1 FROM countries WHERE population > 9999)": 0,
    "SELECT COUNT(*) AS n FROM customers WHERE age > (SELECT AVG(age) FROM customers HAVING COUNT(*) < 0)": 0,
}


@pytest.mark.parametrize("sql", SETTLED)
def test_subqueries_are_settled_before_they_are_used(sql: str) -> None:
    reply = service("oracle", "shop").session().execute(sql)
    assert reply.table.column(0).to_pylist() == [SETTLED[sql]]


WITHOUT_INTERVALS = (
    "SELECT MEDIAN(age) * 2 AS m FROM customers",
    "SELECT MEDIAN(age) * COUNT(*) AS m FROM customers",
    "SELECT country, SUM(COUNT(*)) OVER () AS s FROM customers GROUP BY country",
    "SELECT COUNT(*) * 2 AS n FROM customers UNION ALL SELECT 1",
)


@pytest.mark.parametrize("sql", WITHOUT_INTERVALS)
def test_what_has_no_interval_of_its_own_is_answered_without(sql: str) -> None:
    reply = service("oracle", "shop").session().execute(sql, intervals=True)
    assert not reply.intervals
    assert reply.table.num_rows


def test_a_payer_without_a_limit_pays_what_it_costs() -> None:
    opened = service("shop", "shop")
    session = opened.session("analyst")
    priced = session.prepare(COUNT)
    payer = Payer(
        session._accounts(), Note(opened.policy.version, "analyst"), opened.policy.answers_key
    )
    given = answer(priced, payer, opened.tools, intervals=False)
    assert given.cost == priced.cost
    assert not given.recalled


@pytest.mark.parametrize("text", ["$salt", "$x0_ and $salt", '"$salt'])
def test_text_that_looks_like_a_parameter_is_text(text: str) -> None:
    with service("oracle", "shop") as opened:
        reply = opened.session().execute("SELECT COUNT(*) FROM orders WHERE channel = $1", (text,))
        assert reply.table.column(0).to_pylist() == [0]
