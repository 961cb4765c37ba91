"""Lists of quantiles over every face, and how they are written where there are no lists."""

from __future__ import annotations

import csv
import json
from datetime import date

import pytest
from support.services import policy_file, service

import dpsql
from dpsql.cli import main
from dpsql.service import plain

SQL = "SELECT APPROX_QUANTILES(amount, 2) AS q, QUANTILE_DISC(placed, ARRAY[0.5]) AS d FROM orders"


def test_a_list_is_in_order_whatever_the_noise() -> None:
    session = service("shop", "shop", seed=3).session("analyst")
    unsorted = 0
    for i in range(12):
        wide = f"WHERE amount < {400 + i}"
        many = "ARRAY[0.45, 0.5, 0.55]"
        reply = session.execute(
            f"SELECT QUANTILE_CONT(amount, {many}) AS q, QUANTILE_CONT(amount, ARRAY[0.5, 0.45, 0.55]) AS u"
            f" FROM orders {wide}"
        )
        ((inside, given),) = plain.python_rows(reply)
        assert inside == sorted(inside)
        assert sorted(given) == inside, "the same quantiles, measured once"
        unsorted += [given[1], given[0], given[2]] != inside
    assert unsorted, "else the order would say nothing"


def test_faces_show_lists(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(policy_file("shop", "shop"))
    with dpsql.connect(path, role="analyst") as connection:
        cursor = connection.execute(SQL)
        ((amounts, days),) = cursor.fetchall()
        assert [d[1] for d in cursor.description or ()] == ["double[]", "date[]"]
    assert len(amounts) == 3
    assert isinstance(days[0], date)

    def told(form: str) -> str:
        assert main(["query", "--policy", path, "--role", "analyst", "--format", form, SQL]) == 0
        return capsys.readouterr().out

    (row,) = json.loads(told("json"))["rows"]
    assert row == [amounts, [days[0].isoformat()]]
    _, values = csv.reader(told("csv").splitlines())
    assert values == ["{" + ",".join(map(str, amounts)) + "}", "{" + str(days[0]) + "}"]
    assert f"{{{days[0]}}}" in told("table")


def test_words_that_need_it_are_quoted() -> None:
    words = ["plain", "", "null", None, 'a "b"', "c,d", True, "back\\slash"]
    assert (
        plain.write_list(words) == '{plain,"","null",NULL,"a \\"b\\"","c,d",true,"back\\\\slash"}'
    )
