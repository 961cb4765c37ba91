"""Planning takes a bounded amount of work, and ends where somebody asks for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support import services
from support.corpus import CORPUS, SHOP, Entry

from dpsql import effort
from dpsql.cli import serve
from dpsql.diagnostics.refusal import Refused, Stopped
from dpsql.engines.duckdb import allowlist, guard
from dpsql.execution import execution, interrupt
from dpsql.serve import process
from dpsql.service import Service, Session
from dpsql.service.plan_cache import PlanCache

SMALL = 60_000
"""Steps in these tests, so that statements can be small."""
LONG = 10.0


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with services.service("shop", "shop") as opened:
        yield opened


@pytest.fixture
def analyst(shop: Service) -> Session:
    return shop.session("analyst")


def _listed(count: int, write: Callable[[int], str]) -> str:
    return ", ".join(map(write, range(count)))


def balanced(parts: list[str], word: str) -> str:
    """The parts joined by a word, nested as little as can be."""
    while len(parts) > 1:
        pairs = (parts[i : i + 2] for i in range(0, len(parts), 2))
        parts = [f"({f' {word} '.join(pair)})" for pair in pairs]
    return parts[0]


ARMS = _listed(250, lambda i: f"WHEN 'a{i}' THEN 'b{i}'").replace(",", "")
STARS = "SELECT * FROM " + "(SELECT *, * FROM " * 20 + "countries" + ") AS t" * 20
LARGE = {
    "correlations": f"SELECT {_listed(6, lambda i: f'CORR(amount + {i}, amount * {i})')} FROM orders",
    "averages": f"SELECT {_listed(25, lambda i: f'AVG(amount + {i})')} FROM orders",
    "extremes": f"SELECT {_listed(40, lambda i: f'MAX(amount + {i})')} FROM orders",
    "branches": f"SELECT CASE channel {ARMS} END, COUNT(*) FROM orders GROUP BY 1",
    "keys": f"SELECT COUNT(*) FROM orders GROUP BY {_listed(150, lambda i: f'amount > {i}')}",
    "windows": "SELECT 1 FROM (SELECT customer_id, "
    f"{_listed(60, lambda i: f'SUM(amount) OVER (PARTITION BY customer_id ORDER BY placed ROWS {i} PRECEDING) AS w{i}')}"
    " FROM orders) AS t HAVING COUNT(*) > 1",
    "lists": f"SELECT COUNT(*) FROM orders WHERE amount IN ({_listed(2000, str)})",
    "columns": f"SELECT {_listed(400, lambda i: f'LENGTH(country) + {i}')} FROM countries",
    "having": "SELECT channel FROM orders GROUP BY channel HAVING "
    + balanced([f"SUM(amount + {i}) > 5" for i in range(40)], "AND"),
}
DEEP = {
    "AND": "SELECT COUNT(*) FROM orders WHERE "
    + balanced([f"amount <> {i}" for i in range(600)], "AND"),
    "WITH": "WITH c0 AS (SELECT customer_id, amount FROM orders), "
    + _listed(300, lambda i: f"c{i + 1} AS (SELECT customer_id, amount FROM c{i})")
    + " SELECT SUM(amount) FROM c300",
    "measurements": f"SELECT {_listed(500, lambda i: f'MEDIAN(amount + {i})')} FROM orders",
}


def refused(session: Session, text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        session.prepare(text)
    return caught.value


@pytest.mark.parametrize("name", LARGE)
def test_a_statement_that_is_much_work_is_refused(
    name: str, analyst: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "MOST_STEPS", SMALL)
    found = refused(analyst, LARGE[name])
    assert (found.code, found.instead) == ("DP115", effort._too_much().instead), found


@pytest.mark.parametrize("name", DEEP)
def test_a_statement_that_is_too_deep_is_refused_and_no_defect(name: str, analyst: Session) -> None:
    found = refused(analyst, DEEP[name])
    assert found.code == "DP115"
    assert found.headline in (effort._too_deep().headline, effort._too_much().headline)


def test_columns_do_not_double_without_end(analyst: Session) -> None:
    found = refused(analyst, STARS)
    assert (found.code, found.position is not None) == ("DP115", True)
    assert "1600 columns" in found.headline
    many = "SELECT " + _listed(1601, str)
    assert refused(analyst, many).headline == found.headline


def test_a_cube_is_counted_before_it_is_made(analyst: Session) -> None:
    """Of 60 keys it would have more sets than there is memory for."""
    keys = _listed(60, lambda i: f"(amount > {i})")
    for text in (f"CUBE ({keys})", f"GROUPING SETS (CUBE ({keys}), ())"):
        found = refused(analyst, f"SELECT COUNT(*) FROM orders GROUP BY {text}")
        assert (found.code, found.headline) == ("DP115", "more than 64 grouping sets")


@pytest.mark.parametrize(
    "grown", ["a * a", "a + a", "a * a / 3 + a * a", "ABS(a * a)", "ROUND(a * a)"]
)
def test_ends_do_not_grow_with_what_they_are_ends_of(grown: str, analyst: Session) -> None:
    """A product of 40 levels would else have bounds of 2 ** 40 digits."""
    levels = _listed(40, lambda i: f"c{i + 1} AS (SELECT customer_id, {grown} AS a FROM c{i})")
    text = (
        f"WITH c0 AS (SELECT customer_id, age AS a FROM customers), {levels}"
        " SELECT COUNT(*) FROM c40 WHERE a > 5"
    )
    start = time.process_time()
    assert analyst.prepare(text).parts
    assert time.process_time() - start < LONG


def test_without_counting_they_are_planned(
    analyst: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that the tests above are for."""
    monkeypatch.setattr(effort, "MOST_STEPS", SMALL)
    monkeypatch.setattr(effort._Effort, "look", lambda self: None)
    assert analyst.prepare(LARGE["averages"] + " -- uncounted").parts


def _steps(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    made: list[effort._Effort] = []

    class Watched(effort._Effort):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    with services.service("shop", "shop") as opened, monkeypatch.context() as patch:
        patch.setattr(effort, "_Effort", Watched)
        opened.session("analyst").prepare(text)
    return effort.MOST_STEPS - made[-1].left


def test_the_same_text_takes_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is refused always or never, however busy the machine is."""
    text = (
        "SELECT channel, AVG(amount), COUNT(*) FROM orders GROUP BY channel HAVING SUM(amount) > 3"
    )
    first = _steps(text, monkeypatch)
    assert 1_000 < first < SMALL
    assert _steps(text, monkeypatch) == first


ENDLESS = f"SELECT {_listed(600, lambda i: f'AVG(amount + {i})')} FROM orders"


def _stopped(
    session: Session, monkeypatch: pytest.MonkeyPatch, stop: Callable[[int], None]
) -> float:
    """Seconds until a long statement, which another thread plans, has ended after ``stop``."""
    monkeypatch.setattr(effort, "MOST_STEPS", 10**12)
    found: list[Stopped] = []
    begun = threading.Event()

    def plan() -> None:
        begun.set()
        try:
            session.prepare(ENDLESS)
        except Stopped as error:
            found.append(error)

    thread = threading.Thread(target=plan, daemon=True)
    thread.start()
    assert begun.wait(LONG)
    assert thread.ident is not None
    start = time.monotonic()
    while thread.is_alive() and time.monotonic() - start < LONG:
        time.sleep(0.1)  # before it plans there is nothing to stop
        stop(thread.ident)
    assert not thread.is_alive()
    (error,) = found
    assert (error.code, error.sqlstate) == ("DP904", "57014")
    assert error.why == ""
    return time.monotonic() - start


def test_an_interrupt_stops_planning(analyst: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _stopped(analyst, monkeypatch, analyst.interrupt) < 1


def test_nobody_else_is_stopped(analyst: Session) -> None:
    analyst.interrupt(threading.get_ident())  # plans nothing now
    assert analyst.prepare("SELECT COUNT(*) FROM orders").parts


def test_planning_ends_with_the_time_of_its_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: times[0])

    def forever() -> None:
        while True:
            times[0] += 0.001
            effort.step()

    monkeypatch.setattr(effort, "MOST_STEPS", 10**12)
    with execution(30), effort.limit_effort(), pytest.raises(Stopped):
        forever()
    assert 30 < times[0] < 31 + effort.BETWEEN_LOOKS / 1000


def test_what_is_inside_counts_as_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "MOST_STEPS", 10_000)

    def part() -> None:
        with effort.limit_effort():
            effort.step(4_000)

    with effort.limit_effort():
        part()
        part()
        with pytest.raises(Refused):
            part()
    assert not effort.is_planning()
    effort.step(10**9)  # outside nothing is counted


def test_an_error_is_within_its_account_of_prices(
    analyst: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accuracy is looked for by pricing the plan many times: all of it counts."""
    text = f"SELECT {_listed(8, lambda i: f'AVG(amount + {i})')} FROM orders"
    analyst.prepare(text)
    analyst.execute("SET dpsql.max_error = 100000000")
    analyst.prepare(text + " -- again")
    monkeypatch.setattr(effort, "MOST_STEPS", SMALL)
    assert refused(analyst, text + " -- once more").code == "DP115"


# --- turns ----------------------------------------------------------------------------------


def _work(steps: int) -> None:
    with effort.limit_effort():
        for _ in range(0, steps, effort.BETWEEN_LOOKS):
            effort.step(effort.BETWEEN_LOOKS + 1)


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(effort, "rest", found.append)
    return found


def test_what_is_much_work_waits_while_another_has_its_turn(rests: list[float]) -> None:
    _work(2 * effort.LIGHT)
    assert not rests
    with effort._TURN:
        _work(effort.LIGHT - effort.BETWEEN_LOOKS)
        assert not rests
        _work(2 * effort.LIGHT)
    assert len(rests) >= effort.LIGHT // effort.BETWEEN_LOOKS - 2
    assert set(rests) == {effort.PAUSE}


def test_a_turn_ends_with_its_statement(rests: list[float]) -> None:
    for steps in (2 * effort.LIGHT, 10 * effort.MOST_STEPS):
        try:
            _work(steps)
        except Refused:
            assert steps > effort.MOST_STEPS
        assert not effort._TURN.locked()
    assert not rests


def test_a_statement_that_waits_for_its_turn_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "PAUSE", LONG)
    found: list[float] = []

    def work() -> None:
        start = time.monotonic()
        with execution(60), pytest.raises(Stopped):
            _work(effort.MOST_STEPS)
        found.append(time.monotonic() - start)

    with effort._TURN:
        thread = threading.Thread(target=work)
        thread.start()
        while not found:
            assert thread.ident is not None
            interrupt(thread.ident)
            thread.join(0.02)
    assert found[0] < LONG / 2


def test_a_server_lets_its_loop_run_often() -> None:
    """Planning is Python: the loop of the faces waits for it as long as threads keep the interpreter."""
    before, seen = sys.getswitchinterval(), list[float]()

    async def look() -> None:
        seen.append(sys.getswitchinterval())

    try:
        serve._loop(look())
    finally:
        sys.setswitchinterval(before)
    assert seen == [pytest.approx(process.SWITCH_SECONDS)]
    assert before > process.SWITCH_SECONDS


def _taken(found: Service, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> int:
    """The steps of planning an entry as if it had not been planned before."""
    made: list[effort._Effort] = []

    class Listed(effort._Effort):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(effort, "_Effort", Listed)
    session = found.session()
    session.execute(f"SET dpsql.dialect = '{entry.world.dialect}'")
    found.plans = PlanCache()
    made.clear()
    session.prepare(entry.sql)
    return sum(effort.MOST_STEPS - one.left for one in made)


ASKED = [e for e in CORPUS if e.world is SHOP][::9]


def _repeated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Entries whose planning takes other steps once they were planned."""
    changed = []
    with services.service(SHOP.policy, SHOP.data, SHOP.change) as fresh:
        for entry in ASKED:
            first, again = (_taken(fresh, entry, monkeypatch) for _ in range(2))
            changed += [entry.name] if first != again else []
    return changed


def test_what_was_planned_before_changes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whether a text is refused would tell what others have asked."""
    assert _repeated(monkeypatch) == []


def test_a_memory_that_is_not_counted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (guard, allowlist):
        monkeypatch.setattr(module, "count_known", lambda *_: None)
    assert len(_repeated(monkeypatch)) > len(ASKED) // 2
