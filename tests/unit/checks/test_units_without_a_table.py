"""Units without a table: what pairs rows of different units is refused, as for units with one."""

from __future__ import annotations

import pytest
from support.shop import outcome, priced

from dpsql.diagnostics.refusal import Refused
from dpsql.price.priced import PricedPlan

POLICY = "policies/ratings.yaml"
REFUSED = {
    "SELECT COUNT(*) FROM ratings AS r JOIN logins AS l ON l.device = r.course": "DP301",
    "SELECT COUNT(*) FROM ratings AS r JOIN logins AS l ON l.minutes = r.s": "DP301",
    "SELECT COUNT(*) FROM ratings AS r JOIN ratings AS q ON r.rating = q.rating + 1": "DP301",
    "SELECT COUNT(*) FROM ratings AS r LEFT JOIN logins AS l ON l.minutes = r.stars": "DP301",
    "SELECT COUNT(*) FROM ratings AS r FULL JOIN logins AS l ON l.who = r.s": "DP303",
    "SELECT COUNT(*) FROM courses AS c LEFT JOIN ratings AS r ON r.course = c.course": "DP303",
    "SELECT COUNT(*) FROM logins WHERE who IN (SELECT stars FROM ratings)": "DP301",
    "SELECT COUNT(*) FROM logins AS l WHERE NOT EXISTS (SELECT 1 FROM ratings AS r WHERE r.stars = l.minutes)": "DP301",
    "SELECT COUNT(*) FROM marks AS m JOIN absences AS a ON a.place = m.school": "DP301",
    "SELECT COUNT(*) FROM marks AS m JOIN absences AS a ON a.pupil = m.number": "DP301",
    "SELECT COUNT(*) FROM marks AS m JOIN absences AS a ON a.place = m.school AND a.days = m.number": "DP301",
    "SELECT COUNT(*) FROM marks AS m JOIN ratings AS r ON r.s = m.number": "DP302",
    "SELECT COUNT(*) FROM (SELECT s FROM ratings UNION ALL SELECT number FROM marks) AS t": "DP302",
    "SELECT COUNT(*) FROM replies AS a JOIN ratings AS r ON r.stars = a.length": "DP301",
    "SELECT AVG(n) FROM (SELECT COUNT(*) OVER () AS n FROM ratings) AS t": "DP109",
    "SELECT AVG(n) FROM (SELECT COUNT(*) OVER (PARTITION BY school) AS n FROM marks) AS t": "DP109",
    "SELECT s, COUNT(*) FROM ratings LIMIT 5": "DP111",
    "SELECT s FROM ratings": "DP101",
}
ANSWERED = (
    "SELECT COUNT(*) FROM ratings AS r JOIN logins AS l ON l.who = r.s",
    "SELECT COUNT(*) FROM ratings AS r, logins AS l WHERE l.who = r.s",
    "SELECT COUNT(*) FROM profiles AS p JOIN ratings AS r USING (s)",
    "SELECT COUNT(*) FROM marks AS m JOIN absences AS a ON a.place = m.school AND m.number = a.pupil",
    "SELECT COUNT(*) FROM replies AS a JOIN replies AS b ON a.rating = b.rating",
    "SELECT COUNT(*) FROM replies AS a JOIN ratings AS r ON a.rating = r.rating JOIN logins AS l ON l.who = r.s",
    "SELECT AVG(n) FROM (SELECT LEAST(COUNT(*), 9) AS n FROM ratings GROUP BY s, course) AS t",
    "SELECT AVG(n) FROM (SELECT school, number, LEAST(COUNT(*), 9) AS n FROM marks GROUP BY 1, 2) AS t",
    "SELECT AVG(n) FROM (SELECT rating, LEAST(COUNT(*), 9) AS n FROM replies GROUP BY rating) AS t",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_rows_of_different_units_do_not_meet(sql: str) -> None:
    found = outcome(sql, policy=POLICY)
    assert isinstance(found, Refused)
    assert REFUSED[sql] in {refusal.code for refusal in found.refusals}


@pytest.mark.parametrize("sql", ANSWERED)
def test_rows_of_one_unit_do(sql: str) -> None:
    assert priced(sql, policy=POLICY).parts


@pytest.mark.parametrize("sql", [sql for sql, code in REFUSED.items() if code == "DP301"][:4])
def test_what_is_told_to_be_written_instead_is_answered(sql: str) -> None:
    found = outcome(sql, policy=POLICY)
    assert isinstance(found, Refused)
    (refusal,) = found.refusals
    assert isinstance(outcome(refusal.instead, policy=POLICY), PricedPlan), refusal.instead
