"""Views of the policy: the written-out query under a name, for whoever may see it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.services import policy_file, real_service, service

from dpsql.cli import main
from dpsql.diagnostics.refusal import PolicyError, Refused
from dpsql.service import Service

WEB = """(SELECT *, CASE WHEN amount > 100 THEN 'large' ELSE 'small' END AS size
 FROM orders WHERE channel = 'web')"""


def with_views(*lines: str) -> Callable[[str], str]:
    """The policy with these views beside its own."""
    return lambda text: text.replace("views:\n", "views:\n" + "".join(f"  {x}\n" for x in lines))


def problems(*lines: str) -> list[str]:
    """What opening a policy with these views says, without the file's name."""
    with pytest.raises(PolicyError) as caught:
        service("dashboards", "shop", with_views(*lines))
    return [line.partition("policy.yaml:")[2] for line in caught.value.problems]


def refused(sql: str, role: str, change: Callable[[str], str] = str) -> Refused:
    with pytest.raises(Refused) as caught:
        service("dashboards", "shop", change).session(role).prepare(sql)
    return caught.value


@pytest.mark.parametrize(("view", "text"), [
    ('SELECT size, COUNT(*) AS n FROM "Web Orders" GROUP BY size',
     f"SELECT size, COUNT(*) AS n FROM {WEB} AS w GROUP BY size"),
    ("SELECT SUM(n) FROM monthly WHERE revenue > 10",
     (f"SELECT SUM(n) FROM (SELECT date_trunc('month', placed) AS month, COUNT(*) AS n, "
     f"SUM(amount) AS revenue FROM {WEB} AS w GROUP BY 1) AS m WHERE revenue > 10")),
    ("SELECT AVG(spent) FROM buyers",
     (f"SELECT AVG(spent) FROM (SELECT c.customer_id, c.country, o.spent, o.n FROM customers AS c "
     f"JOIN (SELECT customer_id, SUM(amount) AS spent, COUNT(*) AS n FROM {WEB} AS w "
     "GROUP BY customer_id) AS o USING (customer_id)) AS b")),
])  # fmt: skip
def test_a_view_is_recalled_as_the_written_out_query(view: str, text: str) -> None:
    session = real_service("dashboards", "shop").session("analyst")
    first = session.execute(text)
    again = session.execute(view)
    assert again.recalled
    assert again.table == first.table


def test_a_role_may_see_a_view_without_the_tables_below() -> None:
    opened = service("dashboards", "shop")
    viewer = opened.session("viewer")
    assert viewer.execute("SELECT COUNT(*) AS n FROM buyers").cost.epsilon
    assert not viewer.execute("SELECT COUNT(*) AS n FROM europe").cost.epsilon
    assert "Known: buyers, europe, monthly." in str(refused("SELECT 1 FROM orders", "viewer"))
    assert refused('SELECT COUNT(*) FROM "Web Orders"', "viewer").code == "DP104"
    held = {a.account for a in viewer.budget()}
    assert held == {
        a.account.replace("analyst", "viewer") for a in opened.session("analyst").budget()
    }


def test_what_is_known_of_views_is_told_to_those_who_see_them() -> None:
    opened = service("dashboards", "shop")
    sql = "SELECT table_name, column_name, type, unit, values FROM dpsql.policy"
    told = {
        row[:2]: row[2:]
        for row in zip(
            *(c.to_pylist() for c in opened.session("viewer").execute(sql).table.columns),
            strict=True,
        )
    }
    assert told[("buyers", "spent")] == ("double", "customer", "0 .. 25000")
    assert told[("buyers", "n")] == ("bigint", "customer", "0 .. 50")
    assert told[("monthly", "n")] == ("bigint", None, None)
    assert {table for table, _ in told} == {"buyers", "monthly", "europe"}


def test_refusals_point_to_where_the_view_is_named() -> None:
    found = refused("SELECT 1 AS one,\n  n FROM buyers", "viewer")
    assert found.code == "DP101"
    two = with_views("pairs: SELECT o.amount FROM orders AS o")
    found = refused(
        "SELECT COUNT(*)\nFROM orders AS o\nJOIN pairs AS p ON o.amount = p.amount", "analyst", two
    )
    assert found.code == "DP301"
    assert found.first.span is not None
    assert found.text[found.first.span.start : found.first.span.end].startswith(("JOIN", "pairs"))
    doubled = "SELECT * FROM {0} UNION ALL SELECT * FROM {0}"
    below = ("countries", "v0", "v1", "v2", "v3")
    wide = with_views(*(f"v{i}: {doubled.format(name)}" for i, name in enumerate(below)))
    many = refused("SELECT a.country FROM v4 AS a, v4 AS b, v4 AS c", "analyst", wide)
    assert many.code == "DP115"


@pytest.mark.parametrize(("lines", "said"), [
    (("a: SELECT * FROM b", "b: SELECT * FROM c", "c: SELECT * FROM a"),
     ['view a: view "a" reads itself (DP115)', 'view b: view "b" reads itself (DP115)',
      'view c: view "c" reads itself (DP115)']),
    (("a: SELECT * FROM nothing",), ['view a: there is no table "nothing" (DP104)']),
    (("a: SELECT FROM",), ["view a: ", "(DP102)"]),
    (("a: SELECT $1 AS x",), ["view a: ", "(DP113)"]),
    (("a: DELETE FROM orders",), ["view a: only queries are answered (DP100)"]),
    (("a: SELECT 1 AS one; SELECT 2 AS two",), ["view a: 2 statements", "(DP103)"]),
    (("a: SELECT country, COUNT(*), country AS Country FROM customers GROUP BY 1",),
     ['view a has two columns called "country"; rename one: ... AS another']),
    (("a: SELECT * FROM orders ORDER BY amount LIMIT 5",), ["view a: ", "(DP108)"]),
    (("a: SELECT MIN(city) AS first FROM customers",), ["view a: MIN of text", "(DP110)"]),
    (("a: SELECT email FROM customers", "b: SELECT email, COUNT(*) AS n FROM a GROUP BY 1"),
     ["view b: ", "(DP305)"]),
])  # fmt: skip
def test_a_view_that_cannot_be_one_keeps_the_policy_from_opening(
    lines: tuple[str, ...], said: list[str]
) -> None:
    told = "\n".join(problems(*lines))
    assert all(words in told for words in said), told
    assert told.startswith(("41:", "42:"))


def test_check_says_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(policy_file("dashboards", "shop"))]) == 0
    assert "views      europe, Web Orders, buyers, monthly" in capsys.readouterr().out
    broken = policy_file("dashboards", "shop", with_views("a: SELECT * FROM a"))
    assert main(["check", str(broken)]) != 0
    assert 'view a: view "a" reads itself (DP115)' in capsys.readouterr().err


def test_a_policy_that_does_not_open_leaves_nothing_open() -> None:
    path = policy_file("dashboards", "shop", with_views("a: SELECT * FROM a"))
    with pytest.raises(PolicyError):
        Service.open(path)
    path.write_text(path.read_text().replace("  a: SELECT * FROM a\n", ""))
    Service.open(path).close()


def test_what_a_view_asks_for_is_asked_where_it_is_named() -> None:
    asks = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.01, max_groups_contributed={}) channel, SUM(amount, contribution_bounds_per_row => (0, {})) AS n FROM orders GROUP BY channel"
    session = service("dashboards", "shop", with_views(f"few: {asks.format(2, 50)}")).session(
        "analyst"
    )
    told = session.explain("SELECT * FROM few")
    assert "cost: epsilon 0.01," in told
    assert "clamped to 0 .. 50" in told
    many = refused(
        "SELECT 1 AS one,\n n FROM few", "analyst", with_views(f"few: {asks.format(99, 50)}")
    )
    assert many.code == "DP406"
    assert many.first.span is not None
    assert many.text[many.first.span.start : many.first.span.end] == "few"


HIDING = (
    "inner_groups: SELECT SUM(n) AS n FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) AS g",
    "public_groups: SELECT MAX(n) AS n FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) AS g",
    "totals: SELECT SUM(n) AS n FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) AS g",
    "levels: SELECT COUNT(*) AS n, channel AS c FROM orders GROUP BY ROLLUP (channel, 'x')",
    "ages: SELECT age AS years FROM customers",
    "listed: SELECT DISTINCT channel AS c FROM orders",
    "either: SELECT channel AS c FROM orders UNION SELECT page FROM visits",
    "means: SELECT AVG(n) AS n FROM (SELECT started::date AS d, age, COUNT(*) AS n FROM visits JOIN customers USING (customer_id) GROUP BY 1, 2) AS g",
    "again: SELECT n FROM public_groups",
)  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM inner_groups",
        "SELECT n FROM public_groups",
        "SELECT n FROM again",
        "SELECT n FROM totals",
        "SELECT * FROM levels",
        "SELECT MAX(years) FROM ages",
        "SELECT COUNT(*), years > 50 AS older FROM ages GROUP BY 2",
        "SELECT * FROM listed",
        "SELECT * FROM either",
        "SELECT n FROM means",
    ],
)
def test_notes_name_nothing_that_a_view_hides(sql: str) -> None:
    """A viewer sees views, and learns no name of what is behind them."""
    names = ", ".join(line.partition(":")[0] for line in HIDING)

    def change(text: str) -> str:
        return with_views(*HIDING)(text).replace("tables: [buyers,", f"tables: [{names}, buyers,")

    notes = service("dashboards", "shop", change).session("viewer").prepare(sql).plan.notes
    assert notes
    hidden = r"customers|orders|visits|city|channel|page|\bage\b|started"
    assert not [note for note in notes if re.search(hidden, note)]


def test_refusals_name_nothing_that_a_view_hides() -> None:
    for sql in (
        "SELECT n FROM buyers",
        "SELECT * FROM buyers ORDER BY 1",
        "SELECT DISTINCT customer_id FROM buyers",
    ):
        assert not re.search("customers|orders|amount", str(refused(sql, "viewer"))), sql
