"""A session's own views are their text in its place: for it alone, and for as long as it lasts."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from support.services import service

from dpsql.diagnostics.refusal import Refused
from dpsql.memory.pool import POOL, Use
from dpsql.service import Service, Session, plain
from dpsql.service.temporary import LONGEST, MOST

ADULTS = "SELECT country, age FROM customers WHERE age > 30"


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with service("oracle", "shop") as opened:
        yield opened


@pytest.fixture
def session(shop: Service) -> Session:
    return shop.session("oracle")


def code(session: Session, sql: str) -> str:
    with pytest.raises(Refused) as caught:
        session.execute(sql)
    return caught.value.first.code


def test_a_view_is_its_text(session: Session) -> None:
    assert session.execute(f"CREATE TEMP VIEW adults AS {ADULTS};").tag == "CREATE VIEW"
    asked = session.prepare("SELECT country, COUNT(*) FROM adults GROUP BY country")
    written = session.prepare(f"SELECT country, COUNT(*) FROM ({ADULTS}) v GROUP BY country")
    assert asked.parts == written.parts
    rows = session.execute("SELECT country, COUNT(*) FROM Adults GROUP BY country ORDER BY 1")
    again = f"SELECT country, COUNT(*) FROM ({ADULTS}) v GROUP BY country ORDER BY 1"
    assert plain.python_rows(rows) == plain.python_rows(session.execute(again))


def test_a_view_gives_back_stored_answers() -> None:
    """What is stored is found by the plan, in which a view is written out."""
    from support.services import real_service

    with real_service("shop", "shop") as opened:
        first, other = opened.session("analyst", "a"), opened.session("analyst", "b")
        written = first.execute(f"SELECT COUNT(*) FROM ({ADULTS}) v")
        other.execute(f"CREATE TEMP VIEW v AS {ADULTS}")
        asked = other.execute("SELECT COUNT(*) FROM v")
        assert asked.recalled
        assert plain.python_rows(asked) == plain.python_rows(written)


def test_another_session_does_not_have_it(shop: Service, session: Session) -> None:
    session.execute(f"CREATE TEMPORARY VIEW mine AS {ADULTS}")
    session.execute("SELECT COUNT(*) FROM mine")
    assert code(shop.session("oracle"), "SELECT COUNT(*) FROM mine") == "DP104"
    other = shop.session("oracle")
    other.execute("CREATE TEMP VIEW mine AS SELECT country FROM countries")
    assert plain.python_rows(other.execute("SELECT COUNT(*) FROM mine")) == [(9,)]
    assert plain.python_rows(session.execute("SELECT COUNT(*) FROM mine")) != [(9,)]


def test_it_is_replaced_dropped_and_discarded(session: Session) -> None:
    session.execute(f"CREATE TEMP VIEW a AS {ADULTS}")
    assert code(session, "CREATE TEMP VIEW A AS SELECT country FROM countries") == "DP106"
    session.execute("CREATE OR REPLACE TEMP VIEW a AS SELECT country FROM countries")
    assert plain.python_rows(session.execute("SELECT COUNT(*) FROM a")) == [(9,)]
    assert "a" in [row[0] for row in plain.python_rows(session.execute("SHOW TABLES"))]
    assert plain.python_rows(session.execute("DESCRIBE a"))[0][:2] == ("country", "text")
    session.execute("DROP VIEW a")
    assert code(session, "SELECT COUNT(*) FROM a") == "DP104"
    assert code(session, "DROP VIEW a") == "DP104"
    session.execute("DROP VIEW IF EXISTS a")
    session.execute('CREATE TEMP VIEW "A b" AS SELECT country FROM countries')
    session.execute('CREATE TEMP VIEW c AS SELECT country FROM "A b"')
    session.execute('DROP VIEW c, "A b" CASCADE')
    session.execute(f"CREATE TEMP VIEW d AS {ADULTS}")
    session.execute("DISCARD ALL")
    assert session.settings.views == ()


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        (f"CREATE TEMP VIEW orders AS {ADULTS}", "DP106"),
        (f'CREATE TEMP VIEW "Orders" AS {ADULTS}', "DP106"),
        (f"CREATE TEMP VIEW pg_class AS {ADULTS}", "DP106"),
        ("CREATE TEMP VIEW a AS SELECT x FROM nowhere", "DP104"),
        ("CREATE TEMP VIEW a AS SELECT country AS x, age AS x FROM customers", "DP106"),
        ("CREATE TEMP VIEW a AS SELECT country FROM countries; DROP TABLE b", "DP103"),
        ("CREATE TEMP VIEW a AS SELECT country FROM countries WHERE population > $1", "DP113"),
        ("CREATE TEMP VIEW a AS SELECT country FROM a", "DP115"),
        ("CREATE TEMP VIEW a AS SELECT account FROM dpsql.budget", "DP104"),
        ("CREATE TEMP VIEW a AS DELETE FROM orders", "DP100"),
        (f"CREATE VIEW a AS {ADULTS}", "DP100"),
        ("CREATE TEMP VIEW a AS SELECT '" + "x" * LONGEST + "' AS x", "DP115"),
    ],
)
def test_what_is_no_view_is_refused(session: Session, sql: str, wanted: str) -> None:
    assert code(session, sql) == wanted
    assert session.settings.views == ()


def test_a_view_shows_no_rows(session: Session) -> None:
    session.execute(f"CREATE TEMP VIEW a AS {ADULTS}")
    assert code(session, "SELECT * FROM a") == "DP101"


def test_a_circle_is_refused(session: Session) -> None:
    session.execute("CREATE TEMP VIEW a AS SELECT country FROM countries")
    session.execute("CREATE TEMP VIEW b AS SELECT country FROM a")
    assert code(session, "CREATE OR REPLACE TEMP VIEW a AS SELECT country FROM b") == "DP115"
    assert plain.python_rows(session.execute("SELECT COUNT(*) FROM b")) == [(9,)]


def _creates(session: Session, sql: str) -> bool:
    try:
        session.execute(sql)
    except Refused:
        return False
    return True


def test_views_in_views_stay_small(session: Session) -> None:
    session.execute("CREATE TEMP VIEW v0 AS SELECT country FROM countries")
    twice = "SELECT a.country FROM v{0} a JOIN v{0} b ON a.country = b.country"
    made = 0
    while made < MOST and _creates(
        session, f"CREATE TEMP VIEW v{made + 1} AS {twice.format(made)}"
    ):
        made += 1
    assert 2 < made < MOST - 2
    last = f"CREATE TEMP VIEW more AS {twice.format(made)}"
    assert code(session, last) == "DP115"


def test_there_are_only_so_many(session: Session) -> None:
    for i in range(MOST):
        session.execute(f"CREATE TEMP VIEW v{i} AS SELECT country FROM countries")
    assert code(session, "CREATE TEMP VIEW more AS SELECT country FROM countries") == "DP115"


def test_what_a_role_does_not_see_its_views_do_not_see() -> None:
    def hide(text: str) -> str:
        return text.replace(
            "  analyst:\n", "  analyst:\n    tables: [countries, visits, customers]\n"
        )

    with service("shop", "shop", hide) as opened:
        session = opened.session("analyst")
        assert code(session, "CREATE TEMP VIEW a AS SELECT amount FROM orders") == "DP104"


def test_its_memory_is_counted_while_it_lasts(shop: Service) -> None:
    gc.collect()
    session = shop.session("oracle")
    before = POOL.bytes_by_use()[Use.SESSIONS.name.lower()]
    session.execute("CREATE TEMP VIEW a AS SELECT '" + "x" * 5_000 + "' AS x FROM countries")
    assert POOL.bytes_by_use()[Use.SESSIONS.name.lower()] - before > 5_000
    session.execute("DROP VIEW a")
    assert POOL.bytes_by_use()[Use.SESSIONS.name.lower()] == before


def _narrow(text: str) -> str:
    """A role that sees one table, and a view that reads another view."""
    views = "views: {sizes: SELECT country FROM hidden, hidden: SELECT country FROM countries}\n\naccounts:"
    role = "\n  narrow: {tables: [countries, sizes], epsilon: 1e9, session: {epsilon: 1e9}, query: {epsilon: 1e9}}\n"
    return text.replace("accounts:", views, 1).rstrip("\n") + role


@pytest.mark.parametrize("name", ["orders", "hidden", "Visits", "nowhere"])
def test_a_name_that_the_role_does_not_see_is_free(name: str) -> None:
    """Whether there is a table or a view of that name cannot be learnt, and neither is in the way."""
    with service("oracle", "shop", _narrow) as shop:
        session = shop.session("narrow")
        assert code(session, "CREATE TEMP VIEW sizes AS SELECT country FROM countries") == "DP106"
        session.execute(
            f"CREATE TEMP VIEW {name} AS SELECT country FROM sizes WHERE country = 'at'"
        )
        assert plain.python_rows(session.execute(f"SELECT COUNT(*) FROM {name}")) == [(1,)]
        assert plain.python_rows(session.execute("SELECT COUNT(*) FROM sizes")) == [(9,)]
