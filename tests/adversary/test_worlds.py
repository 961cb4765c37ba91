"""Worlds have what they are said to have: keys that are close, other readings, and databases before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.adversary import computed, rates, seeds
from tests.adversary.attack import attack, folder, write_both
from tests.adversary.dice import Dice
from tests.adversary.earlier import before
from tests.adversary.judges.replaced import COPIES as READ
from tests.adversary.judges.replaced import Replaced
from tests.adversary.maker import THEMES, Maker
from tests.adversary.model import Row, Step, World
from tests.adversary.oracle import tame
from tests.adversary.place import COPIES, DATA, POLICY, put_in_place, write, write_earlier
from tests.adversary.ratings import RATINGS, VICTIM
from tests.adversary.readings import reread, spelled_out
from tests.adversary.report import report
from tests.adversary.run import fresh
from tests.adversary.seams import check
from tests.adversary.shrink import shrink
from tests.adversary.statements import series
from tests.adversary.types import BIG, KEYS, MOMENTS, WHOLES, Keys
from tests.adversary.worlds import Ground, make

MANY = 120


def worlds(*, views: bool = True) -> Iterator[Ground]:
    for number in range(MANY):
        yield make(f"worlds {number}", views=views)


def test_worlds_are_of_every_theme() -> None:
    assert all(sum(times.values()) == 100 for times in THEMES.values())
    found = Counter(
        Maker(Dice(f"theme {number}"), False, form).theme
        for number in range(MANY)
        for form in ("parent", "flat", "row")
    )
    assert set(found) == {"plain", "close", "rates", "wide", "earlier"}
    assert min(found.values()) > 5


@pytest.mark.parametrize("keys", [*KEYS, *MOMENTS, *WHOLES], ids=lambda keys: keys.sql)
def test_keys_are_different_as_they_are_stored(keys: Keys) -> None:
    values = ", ".join(f"({keys.value(number)})" for number in range(30))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (k {keys.sql} UNIQUE); INSERT INTO t VALUES {values}")


@pytest.mark.parametrize("keys", WHOLES, ids=lambda keys: keys.sql)
def test_whole_numbers_that_are_close_are_one_double(keys: Keys) -> None:
    doubles = {float(keys.value(number)) for number in range(rates.MANY)}
    assert len(doubles) == rates.MANY / 2
    assert min(doubles) == BIG


def test_moments_that_are_close_are_one_microsecond() -> None:
    values = ", ".join(f"({MOMENTS[0].value(number)}::TIMESTAMP)" for number in range(30))
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(DISTINCT k) FROM (VALUES {values}) t(k)")
        assert found.fetchall() == [(10,)]


def test_private_tables_meet_keys_of_a_public_one() -> None:
    grounds = [g for g in worlds() if any(row.table == rates.TABLE for row in g.world.rows)]
    assert 15 < len(grounds) < 60
    asked = [s.text for g in grounds for s in series(g, Dice("asked"), 20)]
    assert (
        sum(f"JOIN {rates.TABLE}" in text or f"FROM {rates.TABLE}" in text for text in asked) > 40
    )
    met = 0
    for ground in grounds:
        read = 'k: {type: "double"}' in ground.world.policy
        stored = {row.cells[0] for row in ground.world.rows if row.table == rates.TABLE}
        met += read and len({float(cell) for cell in stored}) < len(stored)
    assert met > 5


def test_orders_are_numbered_from_where_two_numbers_are_one_double() -> None:
    found = joined = 0
    for ground in worlds():
        orders = [row.cells[0] for row in ground.world.rows if row.table == "orders"]
        lines = {row.cells[0] for row in ground.world.rows if row.table == "lines"}
        if orders and int(orders[0]) > BIG - 9:
            assert len(set(orders)) == len(orders)
            assert lines <= set(orders)
            found += len({float(order) for order in orders}) < len(orders)
            asked = [step.text for step in series(ground, Dice("led"), 60)]
            joined += any("order_id = o.order_id" in text for text in asked)
    assert found > 1
    assert joined > found / 2


COMPUTED = [g for g in worlds() if g.world.readings]
"""Worlds whose tables are views."""


def test_tables_may_be_views_of_each_sort() -> None:
    assert 10 < len(COMPUTED) < 40
    assert not any(ground.world.readings for ground in worlds(views=False))
    assert {view for g in COMPUTED for view, _ in g.world.readings} == {"people", "days"}
    assert any("notes:" in g.world.policy for g in COMPUTED)
    assert set(computed.APART) | set(computed.CONDITIONAL) <= set(computed.DAYS)


def test_another_reading_of_a_view_finds_other_rows_of_units_that_are_there() -> None:
    differ = 0
    for ground in COMPUTED[:12]:
        with folder() as place:
            write(ground.world, place)
            with duckdb.connect(str(place / DATA)) as connection:
                for view, other in ground.world.readings:
                    one, two = (
                        connection.execute(
                            f'SELECT columns(*)::VARCHAR FROM "{name}" ORDER BY ALL'
                        ).fetchall()
                        for name in (view, other)
                    )
                    assert {row[0] for row in two} <= _units(connection)
                    differ += one != two
    assert differ > 5


def _units(connection: duckdb.DuckDBPyConnection) -> set[object]:
    return {
        row[0] for row in connection.execute(f"SELECT id::VARCHAR FROM {computed.KEPT}").fetchall()
    }


def test_the_order_of_rows_is_never_another_one_where_sums_follow_it() -> None:
    for number in range(MANY):
        seed = fresh(f"readings {number}")
        assert not (seed.world.readings and seed.relation == "order")


def test_places_of_a_statement_have_readings_in_turn() -> None:
    text = 'WITH "a" AS NOT MATERIALIZED (SELECT (1)), "b" AS NOT MATERIALIZED (SELECT * FROM "a" AS c) SELECT * FROM "b" AS d'
    assert spelled_out(text) == "SELECT * FROM (SELECT * FROM (SELECT (1)) AS c) AS d"
    kept = 'WITH "k" AS MATERIALIZED (SELECT 2), "a" AS NOT MATERIALIZED (SELECT 1) SELECT * FROM "a" AS b'
    assert spelled_out(kept) == 'WITH "k" AS MATERIALIZED (SELECT 2) SELECT * FROM (SELECT 1) AS b'
    assert reread(text, (), 3) == text
    twice = 'SELECT * FROM "v" AS a, "v" AS b, x."v" AS c'
    found = {reread(twice, [("v", "w")], moment) for moment in range(20)}
    assert found == {
        'SELECT * FROM "v" AS a, "w" AS b, x."v" AS c',
        'SELECT * FROM "w" AS a, "v" AS b, x."v" AS c',
    }


ROWS = tuple(Row("t", (str(n), "1"), f"person:{n % 5}" if n < 30 else None) for n in range(33))


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("one", [True, False])
def test_one_of_two_databases_has_all_rows_and_the_other_fewer(number: int, one: bool) -> None:
    for tamed in (True, False):
        now, earlier = before(ROWS, Dice(f"before {number}"), one=one, tame=tamed)
        fewer, all_of_them = sorted((now, earlier), key=len)
        assert tuple(all_of_them) == ROWS
        assert [row for row in ROWS if row in fewer] == fewer
        assert [row for row in fewer if row.owner is None] == list(ROWS[30:])
        counts = Counter(row.owner for row in fewer if row.owner is not None)
        if tamed:
            assert set(counts.values()) <= {6}
        elif one:
            assert set(counts.values()) <= {1}


def test_the_earlier_database_is_the_larger_one_more_often() -> None:
    found = [before(ROWS, Dice(f"more {n}"), one=True, tame=False) for n in range(80)]
    assert 40 < sum(len(earlier) > len(now) for now, earlier in found) < 75


REPLACED = replace(RATINGS, prepared=True, earlier=RATINGS.rows, rows=RATINGS.rows[::2])
EXPLAINED = (Step("explain", "SELECT COUNT(*) FROM t"), Step("ask", "SELECT COUNT(*) FROM t"))


def test_a_database_takes_the_place_of_another_one_with_its_size_and_times(tmp_path: Path) -> None:
    def there() -> tuple[int, int, int]:
        found = (tmp_path / DATA).stat()
        return found.st_size, found.st_mtime_ns, _count(tmp_path)

    write_earlier(REPLACED, tmp_path)
    before_it = there()
    put_in_place(tmp_path)
    assert there() == (*before_it[:2], len(REPLACED.rows))
    assert before_it[2] == len(REPLACED.earlier)


def _count(place: Path) -> int:
    with duckdb.connect(str(place / DATA), read_only=True) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM t").fetchall()
        return int(count)


def test_copies_of_the_earlier_database_lie_beside_the_other_and_are_not_read(
    tmp_path: Path,
) -> None:
    write_both([(REPLACED, tmp_path)])
    assert (tmp_path / COPIES).exists()
    assert _count(tmp_path) == len(REPLACED.rows)
    for world, read in ((REPLACED, False), (replace(REPLACED, earlier=()), True)):
        case = attack(world, "without", (VICTIM,), EXPLAINED, sampled=False)
        assert [READ in t.text for t in case.left.transcripts] == [read, False]
        assert [READ in m.statement for m in case.left.transcripts[1].measured] == [read]
        assert Replaced().judge(case) is None
    told = replace(case.left, world=REPLACED)
    assert Replaced().judge(replace(case, left=told)) is not None


def test_a_unit_that_is_missing_is_missing_from_the_earlier_database_too(tmp_path: Path) -> None:
    case = attack(REPLACED, "without", (VICTIM,), EXPLAINED, sampled=False)
    assert VICTIM in {row.owner for row in case.left.world.earlier}
    assert VICTIM not in {row.owner for row in case.right.world.earlier}
    assert len(case.right.world.rows) < len(case.left.world.rows)


def test_the_owner_learns_whether_the_data_keeps_the_policy(tmp_path: Path) -> None:
    kept = World(
        "kept", RATINGS.policy.replace("max_rows_per_unit: 5", "max_rows_per_unit: 1"), RATINGS.ddl,
        tuple(Row("t", (str(n), "1", "'web'"), f"person:{n}") for n in range(5)),
    )  # fmt: skip
    broken = replace(kept, rows=kept.rows * 2)
    for world, agree in ((kept, True), (broken, False)):
        assert check(write(world, tmp_path / str(agree)).parent / POLICY) is agree


def test_attacks_on_two_databases_and_two_readings_are_kept_told_and_made_small() -> None:
    world = replace(REPLACED, readings=(("days", "days again"),))
    seed = seeds.Seed(world, "without", (VICTIM,), EXPLAINED)
    assert seeds.from_json(seeds.to_json(seed)) == seed
    case = attack(REPLACED, "without", (VICTIM,), EXPLAINED, sampled=False)
    told = case.left.transcripts[0]
    left = replace(case.left, transcripts=(replace(told, text=READ), *case.left.transcripts[1:]))
    finding = Replaced().judge(replace(case, left=left))
    assert finding is not None
    text = report(finding, seed)
    assert "-- before, a database of the same size and times was prepared" in text
    assert "another reading of days finds days again" in text
    small = shrink(seed, finding, lambda s: finding if len(s.world.earlier) > 2 else None)
    assert len(small.world.earlier) == 3
    assert small.world.rows == ()


def test_tame_worlds_may_lie_where_another_database_lay() -> None:
    found = [tame(f"tame {number}", 1).world for number in range(60)]
    assert 5 < sum(bool(world.earlier) for world in found) < 40
