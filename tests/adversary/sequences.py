"""Scripts whose order matters, each with what must be true in its end.

The judges of payment, recall and agreement look at all of them. ``expects`` says what only this
script can show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.adversary.faces.session import is_absent
from tests.adversary.judges.agreement import cells
from tests.adversary.judges.recall import free
from tests.adversary.model import Step, Transcript, World

Told = Sequence[Transcript]
FINE = "SELECT rank, colour, COUNT(*) AS n, SUM(money) AS m FROM people GROUP BY rank, colour"
COARSE = "SELECT colour, COUNT(*) AS n FROM people GROUP BY colour"
TOTAL = "SELECT COUNT(*) FROM people"
ROLLUP = "SELECT region, COUNT(*) AS n FROM people GROUP BY ROLLUP (region)"
ORDERS = "SELECT SUM(amount) FROM orders"
_TABLES = "abcdefghijkl"
SLOW = (
    f"WITH t AS ({FINE}) SELECT SUM(SQRT(ABS({' + '.join(f'{each}.n' for each in _TABLES)})))"
    f" FROM {', '.join(f't AS {each}' for each in _TABLES)}"
)
"""Combinations of stored groups: post-processing that takes far longer than any deadline."""
MODULE = frozenset({"dbapi"})
WIRE = frozenset({"simple", "extended", "extended binary", "extended portal", "extended pipeline"})
SERVED = WIRE | {"http"}
ALL = SERVED | {"dbapi", "cli"}
STOPPED = frozenset({"DP904", "57014"})
ABORTED = "25P02"
CLOSE = 0.01
"""How near to a price a told price is, which is rounded."""


@dataclass(frozen=True)
class Script:
    """Steps, what must hold of their transcripts, and the faces that can do them."""

    name: str
    steps: Callable[[World], tuple[Step, ...]]
    expects: Callable[[Told], bool]
    means: str
    """What is wrong if the expectation fails."""
    faces: frozenset[str] = ALL
    basic: bool = True
    """Whether epsilons of accounts add up; otherwise they compose in zCDP."""


def asked(*texts: str, role: str = "") -> tuple[Step, ...]:
    """Questions of one role."""
    return tuple(Step("ask", text, role=role) for text in texts)


def changed(*texts: str, role: str = "") -> tuple[Step, ...]:
    """Settings of one role."""
    return tuple(Step("set", text, role=role) for text in texts)


def without_orders(world: World) -> Step:
    """A policy in which the first role sees no orders."""
    shown = world.policy.replace("  analyst:\n", "  analyst:\n    tables: [people, pages]\n")
    return Step("reload", shown)


def newer_data(world: World) -> Step:
    """The policy, for a version of the data that nobody has asked about."""
    return Step("reload", world.policy.replace('data_version: "', 'data_version: "newer '))


def as_before(world: World) -> Step:
    """The policy that the world began with."""
    return Step("reload", world.policy)


def own_session(world: World) -> Step:
    """A session account of the second role that nobody else has used."""
    return Step("set", f"SET dpsql.session = '{world.name}'", role="second")


def answered(told: Told, *numbers: int) -> bool:
    """Whether these steps were answered."""
    return all(told[n].error is None and not is_absent(told[n]) for n in numbers)


def refused(transcript: Transcript, *codes: str) -> bool:
    """Whether a step was refused, with one of these codes."""
    return transcript.error is not None and transcript.error.code in codes


def paid(transcript: Transcript) -> float:
    """The epsilon that an answer cost."""
    return float(transcript.cost[0]) if transcript.cost else 0.0


def costs(transcript: Transcript, epsilon: float) -> bool:
    """Whether an answer cost about so much."""
    return transcript.error is None and abs(paid(transcript) - epsilon) <= CLOSE * epsilon


def same(one: Transcript, other: Transcript) -> bool:
    """Whether two answers have the same cells."""
    return cells(one) == cells(other)


def adds_up(told: Told) -> bool:
    """Whether the total of a ROLLUP, whose key is NULL, is the sum of its groups."""
    groups = [row for row in told[-1].rows if row[0] is not None]
    totals = [row for row in told[-1].rows if row[0] is None]
    return answered(told, -1) and [t[1] for t in totals] == [sum(g[1] for g in groups)]


def in_limits(told: Told) -> bool:
    """Whether an account of three gave three answers of one, and then none, and recalls all."""
    questions = [t for t in told if t.step.act == "ask"]
    first, beyond, again = questions[:3], questions[3:5], questions[5]
    return (
        all(costs(t, 1) for t in first)
        and all(refused(t, "DP402") for t in beyond)
        and answered([again], 0)
        and free(again)
    )


SCRIPTS = (
    Script(
        "recall",
        lambda _: (*asked(FINE), Step("reconnect"), *asked(FINE, TOTAL, FINE)),
        lambda told: answered(told, 0, 2, 4) and free(told[2]) and same(told[0], told[2]),
        "a stored answer is paid for, or is another one",
    ),
    Script(
        "coarse after fine",
        lambda _: (*asked(FINE), *changed("SET dpsql.epsilon = 0.01"), *asked(COARSE)),
        lambda told: answered(told, 0, 2) and free(told[2]),
        "groups that are added up from stored ones are paid for",
    ),
    Script(
        "more accuracy",
        lambda _: (
            *changed("SET dpsql.mechanism = 'gaussian'", "SET dpsql.epsilon = 0.2"), *asked(TOTAL),
            *changed("SET dpsql.epsilon = 1"), *asked(TOTAL),
            *changed("SET dpsql.epsilon = 0.2"), *asked(TOTAL),
        ),
        lambda told: costs(told[2], 0.2) and 0 < paid(told[4]) < 1 and free(told[6]),
        "more accuracy does not cost the difference, or less of it is not free",
        ALL - {"cli"},
        basic=False,
    ),
    Script(
        "fresh",
        lambda _: (*asked(TOTAL), *changed("SET dpsql.fresh = on"), *asked(TOTAL, TOTAL)),
        lambda told: all(costs(told[n], 1) for n in (0, 2, 3)),
        "new noise is not paid for",
        ALL - {"cli"},
    ),
    Script(
        "search",
        lambda _: (*changed("SET dpsql.search = on"), *asked(ORDERS, ORDERS)),
        lambda told: costs(told[1], 1) and free(told[2]) and same(told[1], told[2]),
        "a search is not paid for once",
        ALL - {"cli"},
    ),
    Script(
        "consistent",
        lambda _: (*changed("SET dpsql.consistent = on"), *asked(ROLLUP)),
        adds_up,
        "totals are not the sums of their groups",
        ALL - {"cli"},
    ),
    Script(
        "cancel",
        lambda _: (*asked(FINE), Step("cancel", SLOW, seconds=0.5), *asked(TOTAL)),
        lambda told: refused(told[1], *STOPPED) and answered(told, 0, 2),
        "a statement is not cancelled, or the connection does not go on",
        SERVED,
    ),
    Script(
        "reload",
        lambda world: (
            *asked(ORDERS), without_orders(world), *asked(ORDERS), as_before(world), *asked(ORDERS),
        ),
        lambda told: answered(told, 0, 4) and refused(told[2], "DP104") and free(told[4]),
        "a policy that was read again is not in force",
    ),
    Script(
        "newer data",
        lambda world: (*asked(TOTAL), newer_data(world), *asked(TOTAL, TOTAL)),
        lambda told: costs(told[0], 1) and costs(told[2], 1) and free(told[3]),
        "an answer about older data is given for newer data",
    ),
    Script(
        "a part that is stored",
        lambda _: (
            *changed("SET dpsql.mechanism = 'gaussian'", "SET dpsql.epsilon = 0.2"), *asked(TOTAL),
            *changed("SET dpsql.epsilon = 1"),
            *asked("SELECT COUNT(*), SUM(money), AVG(score) FROM people", TOTAL),
        ),
        lambda told: costs(told[2], 0.2) and 0 < paid(told[4]) <= 1 and answered(told, 5),
        "what is partly stored has another price",
        ALL - {"cli"},
        basic=False,
    ),
    Script(
        "a policy that cannot be read",
        lambda world: (Step("reload", "units: ["), *asked(TOTAL), as_before(world)),
        lambda told: told[0].text == "refused" and answered(told, 1) and told[2].text == "in force",
        "a broken policy is in force, or keeps the old one from being so",
        SERVED,
    ),
    Script(
        "settings",
        lambda _: (
            *changed("SET dpsql.epsilon = 0.3"), *asked(TOTAL), *changed("RESET dpsql.epsilon"),
            *asked(ORDERS), *changed("SET dpsql.epsilon = 1000"), *asked(FINE),
        ),
        lambda told: costs(told[1], 0.3) and costs(told[3], 1) and paid(told[5]) <= 1,
        "a setting does not price the next answer, or goes beyond the role's limit",
    ),
    Script(
        "settings that are none",
        lambda _: (
            *asked("SET dpsql.epsilon = 'inf'", "SET dpsql.epsilon = -1", "SET dpsql.noise = off"),
            *asked(TOTAL),
        ),
        lambda told: all(refused(told[n], "DP401") for n in range(3)) and costs(told[3], 1),
        "a setting that does not exist is taken",
        WIRE | MODULE,
    ),
    Script(
        "two roles",
        lambda world: (
            own_session(world), *asked(TOTAL), *asked(TOTAL, ORDERS, role="second"),
            *changed("SET dpsql.epsilon = 0.1"), *asked(COARSE, role="second"),
        ),
        lambda told: free(told[2]) and same(told[1], told[2]) and refused(told[3], "DP104")
        and costs(told[5], 1),
        "one role's settings or tables are another's, or an answer is not shared",
    ),
    Script(
        "an account's end",
        lambda world: (
            own_session(world),
            *asked(TOTAL, f"{TOTAL} WHERE ok", f"{TOTAL} WHERE NOT ok", COARSE, role="second"),
            Step("reconnect", role="second"), own_session(world),
            *asked(f"{TOTAL} WHERE region = 1", TOTAL, role="second"),
        ),
        in_limits,
        "an account gives more than it has, or a stored answer is refused",
    ),
    Script(
        "prepared, and the policy is read again",
        lambda world: (
            *asked(f"PREPARE p AS {ORDERS}", "EXECUTE p"), without_orders(world),
            *asked("EXECUTE p"), as_before(world), *asked("EXECUTE p"),
        ),
        lambda told: answered(told, 0, 1, 5) and refused(told[3], "DP104", "42P01", "0A000"),
        "a prepared statement keeps what the policy took away",
        WIRE,
    ),
    Script(
        "a transaction that fails",
        lambda _: asked("BEGIN", TOTAL, "SELECT id FROM people", TOTAL, "ROLLBACK", TOTAL),
        lambda told: answered(told, 0, 1, 4, 5) and refused(told[3], ABORTED)
        and free(told[5]) and same(told[1], told[5]),
        "a rollback gives budget back, or forgets an answer",
        WIRE - {"extended pipeline"},
    ),
    Script(
        "a view of one session",
        lambda _: (
            *asked("CREATE TEMP VIEW mine AS SELECT * FROM people WHERE ok"),
            *asked("SELECT COUNT(*) FROM people WHERE ok", "SELECT COUNT(*) FROM mine"),
            *asked("SELECT COUNT(*) FROM mine", role="second"), Step("reconnect"),
            *asked("SELECT COUNT(*) FROM mine"),
        ),
        lambda told: answered(told, 0, 1, 2) and free(told[2]) and same(told[1], told[2])
        and refused(told[3], "DP104") and refused(told[5], "DP104"),
        "a session's view is priced otherwise, or another session's",
        WIRE | MODULE,
    ),
)  # fmt: skip
