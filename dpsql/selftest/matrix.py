"""The questions about the probes: every aggregate, mechanism, strategy and rule, in every scenario.

Tests compare these lists with the registries, so that nothing new is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpsql.bound import GroupCaps, NormClip, PreparedRows
from dpsql.price.request import Mechanism
from dpsql.selftest.copies import ROLE, SEVERAL, WIDE
from dpsql.selftest.probes import (
    CELL,
    EVENTS,
    HOMES,
    LOGINS,
    LOOSE,
    PART,
    PEOPLE,
    PERSON,
    PREPARED,
    PUBLIC,
    ROWS,
    WORD,
)
from dpsql.selftest.products import AGGREGATES, IN_GROUPS, RULES, in_one_group, products
from dpsql.selftest.questions import Question, Step
from dpsql.selftest.scenarios import (
    ABOVE,
    ALONE,
    BELOW,
    BESIDE,
    CROWD,
    EMPTY,
    KEYLESS,
    MAIN,
    SCENARIOS,
    SPREAD,
    TWICE,
    UNLISTED,
)

_EACH_KIND = ("COUNT(*)", "SUM(x)", "AVG(x)", "MEDIAN(x)", "MODE(kind)", "COUNT(DISTINCT n)")
"""One aggregate for each kind of statistic that is bounded in its own way."""
LAWS: tuple[tuple[str, str, Mechanism], ...] = (
    ("COUNT(*)", ROLE, "laplace"), ("SUM(x)", SEVERAL, "gaussian"), ("MEDIAN(x)", ROLE, "laplace"),
)  # fmt: skip
"""One question for every law of noise and of choices: aggregate, role and mechanism."""
FEW = 500
"""A number of cells whose levels are few enough to be made consistent."""
FEWER = 40
"""So few cells that a number of units near that of a crowd is above the noise of empty groups."""


def matrix() -> Iterator[Question]:
    """Every question about the probes."""
    yield from _aggregates()
    yield from products()
    yield from _strategies()
    yield from _prepared()
    yield from _unlisted()
    yield from _keys()
    yield from _selections()
    yield from _clauses()
    yield from _joins()
    yield from _nested()
    yield from _levels()
    yield from _with_enough_units()
    yield from _in_steps()
    yield from _households()
    yield from _without_table()
    yield from _beside()
    yield from _searched()


def by_cell(aggregate: str, table: str = ROWS) -> str:
    """An aggregate for each cell."""
    return f"SELECT {CELL}, {aggregate} FROM {table} GROUP BY {CELL}"


def _aggregates() -> Iterator[Question]:
    for text in AGGREGATES:
        yield Question(text, ROWS, by_cell(text))
        alone = (ALONE, EMPTY)
        yield Question(f"{text} of people", PEOPLE, by_cell(text, PEOPLE), scenarios=alone)
    for law in ("geometric", "gaussian", "auto"):
        mechanism: Mechanism = law
        count = by_cell("COUNT(*)", PEOPLE)
        yield Question(f"COUNT(*) of people, {law}", PEOPLE, count, SEVERAL, mechanism)


def _strategies() -> Iterator[Question]:
    """Each strategy for each kind of statistic, and contributions to several groups."""
    for strategy in IN_GROUPS:
        law: Mechanism = "gaussian" if strategy == NormClip.name else "laplace"
        for text in _EACH_KIND:
            yield Question(
                f"{text} by {strategy}", ROWS, by_cell(text), SEVERAL, law, strategy,
                scenarios=SCENARIOS if text == "COUNT(*)" else (SPREAD,),
            )  # fmt: skip
    yield Question(
        "COUNT(*) in one group of many", ROWS, in_one_group(_parts("COUNT(*)", 2)), WIDE, "laplace",
        GroupCaps.name, scenarios=MAIN,
    )  # fmt: skip
    count = in_one_group(by_cell("COUNT(*)"))
    yield Question("COUNT(*) of one group", ROWS, count, WIDE, "laplace", GroupCaps.name)
    total = "LEAST(GREATEST((AVG(y) - 1) * GREATEST(COUNT(y), 1), 0), 8)"
    both = f"{total} + LEAST(GREATEST(COUNT(y) - 12, 0), 4)"  # more than the twelve others have
    yield Question("what AVG(y) is made of", ROWS, by_cell(both), scenarios=(CROWD, *MAIN))
    same = f"USING ({PERSON})"
    triples = f"{ROWS} AS r JOIN {ROWS} AS s {same} JOIN {ROWS} AS t {same}"
    for name, text, source in (
        ("COUNT(*)", "COUNT(*)", f"{ROWS} AS r"), ("SUM(x)", "SUM(x)", f"{ROWS} AS r"),
        ("COUNT(*) of triples", "COUNT(*)", triples),
    ):  # fmt: skip
        yield Question(
            f"{name} of everybody", ROWS,
            f"SELECT 1 AS {CELL}, {text} FROM {source} WHERE r.{CELL} = 1",
            cells=1, scenarios=(TWICE,),
        )  # fmt: skip
    yield Question(
        "one COUNT(*) of everybody", ROWS, f"SELECT 1 AS {CELL}, COUNT(*) FROM {ROWS} AS r WHERE r.{CELL} = 1",
        cells=1,
    )  # fmt: skip


def _searched() -> Iterator[Question]:
    """Searched bounds: over all rows, so for one cell, and over other rows at each asking."""
    for text in ("COUNT(*)", "SUM(x)"):
        yield Question(
            f"{text} after a search", LOOSE,
            f"SELECT 1 AS {CELL}, {text} FROM {LOOSE} WHERE {WORD} <> 'number {{number}}'",
            cells=1, search=True, scenarios=(TWICE,),
        )  # fmt: skip


def _prepared() -> Iterator[Question]:
    """Questions about a table with a prepared copy, where units are bounded in the scan."""
    strategy = PreparedRows.name
    for text in _EACH_KIND:
        yield Question(
            f"{text} by {strategy}", PREPARED, by_cell(text, PREPARED), SEVERAL, "laplace",
            strategy, scenarios=SCENARIOS if text == "COUNT(*)" else (TWICE, ABOVE, BELOW),
        )  # fmt: skip
    for text, most in (("COUNT(*)", 2), ("SUM(x)", 6)):
        yield Question(
            f"{text} in many groups by {strategy}", PREPARED, _parts(text, most, PREPARED),
            SEVERAL, "gaussian", strategy, scenarios=(SPREAD, KEYLESS),
        )  # fmt: skip
    people = f"{PEOPLE} AS p JOIN {PREPARED} AS r USING ({PERSON})"
    sql = f"SELECT p.{CELL}, COUNT(*) FROM {people} GROUP BY p.{CELL}"
    yield Question("join with prepared rows", PREPARED, sql, scenarios=MAIN)


def _unlisted() -> Iterator[Question]:
    """Numbers of different values, where a person has more of them than the policy lists.

    Over one group, a list of one value is shorter than a person has rows.
    """
    for strategy in (PreparedRows.name, *IN_GROUPS):
        table = PREPARED if strategy == PreparedRows.name else ROWS
        law: Mechanism = "gaussian" if strategy == NormClip.name else "laplace"
        sql = by_cell("COUNT(DISTINCT kind)", table)
        yield Question(
            f"COUNT(DISTINCT kind) by {strategy}", table, sql, SEVERAL, law, strategy, scenarios=(UNLISTED,)
        )  # fmt: skip
    rows = f"{PREPARED} WHERE {CELL} = 1 AND kind NOT IN ('b', 'c')"
    yield Question(
        "COUNT(DISTINCT kind) of everybody in a copy", PREPARED, f"SELECT 1 AS {CELL}, COUNT(DISTINCT kind) FROM {rows}",
        SEVERAL, "laplace", PreparedRows.name, scenarios=(UNLISTED,), cells=1, askings=400,
    )  # fmt: skip


def _parts(aggregate: str, most: int, table: str = ROWS) -> str:
    """The sum over the first four parts of values clamped to 0 .. ``most``, for each cell."""
    return (
        f"SELECT {CELL}, SUM(LEAST(GREATEST(v, 0), {most})) FROM (SELECT {CELL}, {PART},"
        f" {aggregate} AS v FROM {table} GROUP BY {CELL}, {PART}) AS g WHERE {PART} < 5"
        f" GROUP BY {CELL} ORDER BY {CELL}"
    )


def _keys() -> Iterator[Question]:
    """Groups by a column whose values break its declaration."""
    for key, beyond in (("n", "n NOT BETWEEN 0 AND 5"), ("kind", "kind NOT IN ('a', 'b', 'c')")):
        groups = f"SELECT {CELL}, {key}, COUNT(*) AS v FROM {ROWS} GROUP BY {CELL}, {key}"
        for name, where in (("all of", "TRUE"), ("what is beyond", beyond)):
            yield Question(
                f"{name} a key, {key}", ROWS,
                f"SELECT {CELL}, SUM(v) FROM ({groups}) AS g WHERE {where} GROUP BY {CELL}",
                SEVERAL, scenarios=(ABOVE, BELOW),
            )  # fmt: skip


def _selections() -> Iterator[Question]:
    """Groups that are not public, by every rule that selects groups."""
    several = (
        f"SELECT {WORD}, COUNT(n) FROM (SELECT {WORD}, {PART}, COUNT(*) AS n FROM {ROWS}"
        f" GROUP BY {WORD}, {PART}) AS g WHERE {PART} < 5 GROUP BY {WORD} ORDER BY {WORD}"
    )
    some = (ALONE, EMPTY)
    for rule, role, law in RULES:
        for text in ("COUNT(*)", f"COUNT(DISTINCT {PERSON})", "SUM(x)", "MEDIAN(x)"):
            yield Question(
                f"{text} of hidden groups, {rule}", ROWS,
                f"SELECT {WORD}, {text} FROM {ROWS} GROUP BY {WORD}", role, law,
                scenarios=SCENARIOS if text == "COUNT(*)" else some,
            )  # fmt: skip
        people = f"SELECT {WORD}, COUNT(*) FROM {PEOPLE} GROUP BY {WORD}"
        yield Question(
            f"people of hidden groups, {rule}", PEOPLE, people, role, law, scenarios=some
        )
        yield Question(f"several hidden groups, {rule}", ROWS, several, role, law, scenarios=MAIN)
        homes = f"SELECT {WORD}, COUNT(*) FROM {HOMES} GROUP BY {WORD}"
        yield Question(f"homes of hidden groups, {rule}", HOMES, homes, role, law, scenarios=some)


def _clauses() -> Iterator[Question]:
    """Questions with options of WITH DIFFERENTIAL_PRIVACY and with bounds of aggregates."""
    for options, text, words in (
        ("epsilon = 0.7", "AVG(x)", CELL),
        ("max_rows_contributed = 2", "COUNT(*)", CELL),
        ("max_groups_contributed = 1", "SUM(x)", CELL),
        ("group_selection_strategy = PUBLIC_GROUPS", "COUNT(*)", CELL),
        ("group_selection_strategy = LAPLACE_THRESHOLD", "COUNT(*)", WORD),
        ("min_privacy_units_per_group = 2", "COUNT(*)", WORD),
        ("epsilon = 1", "COUNT(*, contribution_bounds_per_group => (0, 1))", CELL),
        ("epsilon = 1", "SUM(x, contribution_bounds_per_group => (0, 2))", CELL),
        ("epsilon = 1", "SUM(x, contribution_bounds_per_row => (0, 1))", CELL),
    ):
        sql = (
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {words}, {text} FROM {ROWS}"
            f" GROUP BY {words}"
        )
        yield Question(
            f"{text}, {options}",
            ROWS,
            sql,
            SEVERAL,
            "auto",
            scenarios=(TWICE, SPREAD, ALONE, EMPTY),
        )


def _joins() -> Iterator[Question]:
    """Joins of a person's rows with each other, and with public rows."""
    same = f"USING ({PERSON})"
    equal = f"r.{PERSON} = p.{PERSON}"
    people, rows = f"{PEOPLE} AS p", f"{ROWS} AS r"
    for name, items, source in (
        ("fan-out", "COUNT(*)", f"{ROWS} AS p JOIN {rows} {same}"),
        ("fan-out of sums", "SUM(r.x)", f"{ROWS} AS p JOIN {rows} {same}"),
        ("inner join", "SUM(r.x)", f"{people} JOIN {rows} {same}"),
        ("left join", "COUNT(*)", f"{people} LEFT JOIN {rows} ON {equal}"),
        ("left join of sums", "SUM(r.x)", f"{people} LEFT JOIN {rows} ON {equal}"),
        ("right join", "COUNT(*)", f"{rows} RIGHT JOIN {people} ON {equal}"),
        ("semi join", "COUNT(*)", f"{people} WHERE EXISTS (SELECT 1 FROM {rows} WHERE {equal})"),
        ("semi join of rows", "COUNT(*)", f"{ROWS} AS p WHERE p.{PERSON} IN (SELECT r.{PERSON} FROM {rows} WHERE r.n > 1)"),
        ("anti join", "COUNT(*)", f"{people} WHERE NOT EXISTS (SELECT 1 FROM {rows} WHERE {equal} AND r.{PART} = 2)"),
        ("anti join of rows", "COUNT(*)", f"{ROWS} AS p WHERE p.{PERSON} NOT IN (SELECT r.{PERSON} FROM {rows} WHERE r.{PART} = 2)"),
        ("left join of those without", "COUNT(*)", f"{people} LEFT JOIN {rows} ON {equal} AND r.{PART} = 2 WHERE r.{PERSON} IS NULL"),
        ("public join", "COUNT(*)", f"{ROWS} AS p JOIN {PUBLIC} AS k ON p.{PART} = k.part"),
        ("outer public join", "COUNT(k.label)", f"{ROWS} AS p LEFT JOIN {PUBLIC} AS k ON p.{PART} = k.part"),
    ):  # fmt: skip
        sql = f"SELECT p.{CELL}, {items} FROM {source} GROUP BY p.{CELL}"
        yield Question(name, ROWS, sql)
    yield Question(
        "union", ROWS,
        f"SELECT {CELL}, COUNT(*) FROM (SELECT {PERSON}, {CELL} FROM {PEOPLE} UNION ALL"
        f" SELECT {PERSON}, {CELL} FROM {ROWS}) AS u GROUP BY {CELL}", scenarios=MAIN,
    )  # fmt: skip


def _nested() -> Iterator[Question]:
    """Aggregates, windows and distinct rows of each person, below another aggregate."""
    own = f"{PERSON}, {CELL}"
    twice = f"SELECT {own}, {PART}, COUNT(*) AS n FROM {ROWS} GROUP BY {own}, {PART}"
    for name, items, inner in (
        ("AVG of counts", "AVG(v)", f"SELECT {own}, COUNT(*) AS v FROM {ROWS} GROUP BY {own}"),
        ("SUM of the largest", "SUM(v)", f"SELECT {own}, MAX(x) AS v FROM {ROWS} GROUP BY {own}"),
        ("COUNT of those with many", "COUNT(*)", f"SELECT {own} FROM {ROWS} GROUP BY {own} HAVING COUNT(*) > 2"),
        ("nested twice", "SUM(v)", f"SELECT {own}, MAX(n) AS v FROM ({twice}) AS t GROUP BY {own}"),
        ("groups of each person", "COUNT(*)", twice),
        ("rank", "COUNT(*)", f"SELECT {CELL}, RANK() OVER (PARTITION BY {PERSON} ORDER BY {PART}) AS v FROM {ROWS}"),
        ("row number", "SUM(LEAST(GREATEST(v, 0), 4))", f"SELECT {CELL}, ROW_NUMBER() OVER (PARTITION BY {PERSON} ORDER BY {PART}) AS v FROM {ROWS}"),
        ("distinct", "COUNT(*)", f"SELECT DISTINCT {own}, kind FROM {ROWS}"),
        ("ratio", "SUM(v)", f"SELECT {CELL}, LEAST(GREATEST(x / n, 0), 2) AS v FROM {ROWS}"),
        ("casts", "SUM(v)", f"SELECT {CELL}, LEAST(GREATEST(CAST({WORD} AS INTEGER) % n, 0), 2) AS v FROM {ROWS}"),
    ):  # fmt: skip
        sql = f"SELECT {CELL}, {items} FROM ({inner}) AS t GROUP BY {CELL}"
        yield Question(name, ROWS, sql, scenarios=MAIN)


def _levels() -> Iterator[Question]:
    """Totals beside their parts, where a person is in each level."""
    units, two = f"COUNT(DISTINCT {PERSON})", f"GROUPING SETS (({CELL}), ({CELL}, {PART}))"
    for name, text, sets, some in (
        ("ROLLUP of counts", "COUNT(*)", f"ROLLUP ({CELL}, {PART})", None),
        ("ROLLUP of units", units, f"ROLLUP ({CELL}, {PART})", None),
        ("GROUPING SETS", units, two, None),
        ("levels that add up", units, two, FEW),
    ):  # fmt: skip
        rows = ROWS if some is None else f"{ROWS} WHERE {CELL} <= {some}"
        own = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1) " * (some is None)
        yield Question(
            name, ROWS,
            f"SELECT {CELL}, SUM(LEAST(GREATEST(v, 0), 1)) FROM (SELECT {own}{CELL}, {PART}, {text} AS v"
            f" FROM {rows} GROUP BY {sets}) AS g WHERE {CELL} IS NOT NULL AND ({PART} IS NULL OR"
            f" {PART} = 1) GROUP BY {CELL} ORDER BY {CELL}",
            WIDE, scenarios=(SPREAD, ALONE, EMPTY), cells=some, consistent=some is not None,
        )  # fmt: skip


def _with_enough_units() -> Iterator[Question]:
    """Public groups that are left out if their noisy number of units may be that of an empty group.

    Some of these few groups are left out with twelve people and shown with thirteen, or the other
    way round.
    """
    people, rows = f"{PEOPLE} WHERE {CELL} <= {FEW}", f"{ROWS} WHERE {CELL} <= {FEWER}"
    parts = f"SELECT {CELL}, {PART}, COUNT(*) AS v FROM {rows} GROUP BY {CELL}, {PART}"
    above = f"SELECT {CELL}, MAX(v) FROM ({parts}) AS g GROUP BY {CELL} ORDER BY {CELL}"
    laws: tuple[tuple[str, str, int, str, Mechanism], ...] = (
        ("people of groups", by_cell("COUNT(*)", people), FEW, ROLE, "laplace"),
        ("people of groups", by_cell("COUNT(*)", people), FEW, SEVERAL, "gaussian"),
        ("SUM(x) of groups", by_cell("SUM(x)", rows), FEWER, WIDE, "laplace"),
        ("MAX above groups", above, FEWER, WIDE, "laplace"),
    )
    for name, sql, cells, role, law in laws:
        yield Question(
            f"{name} with enough units, {law}", PEOPLE if cells == FEW else ROWS, sql, role, law,
            scenarios=(CROWD, EMPTY), cells=cells, empty_groups="drop",
        )  # fmt: skip


def _in_steps() -> Iterator[Question]:
    """Questions that need a released answer first, and questions that are asked again."""
    units = f"COUNT(DISTINCT {PERSON})"
    passed = f"SELECT {CELL}, {units} AS v FROM {ROWS} GROUP BY {CELL}"
    joined = f"{ROWS} AS r JOIN ({passed}) AS g ON r.{CELL} = g.{CELL} WHERE g.v > 12.5"
    listed = f"SELECT {CELL} FROM {ROWS} GROUP BY {CELL} HAVING {units} > 12.5"
    for name, sql in (
        ("join", f"SELECT r.{CELL}, {units} FROM {joined} GROUP BY r.{CELL}"),
        ("list", by_cell(units, f"{ROWS} WHERE {CELL} IN ({listed})")),
        ("number", by_cell(units, f"{ROWS} WHERE x > (SELECT AVG(x) FROM {ROWS})")),
    ):
        yield Question(f"two phases by a {name}", ROWS, sql, WIDE, scenarios=(CROWD, TWICE))
    rows = f"{ROWS} WHERE {PART} <> 100 + {{number}}"
    finer = (Step(Fraction(2, 5), fresh=False), Step(fresh=False))
    some = (TWICE, EMPTY)
    for text, role, law in LAWS:
        yield Question(
            f"{text} asked again, {law}", ROWS, by_cell(text), role, law,
            steps=(Step(), Step(fresh=False)), scenarios=some,
        )  # fmt: skip
        yield Question(
            f"{text} refined, {law}", ROWS, by_cell(text, rows), role, law,
            steps=finer, scenarios=some,
        )  # fmt: skip
    rows = f"{ROWS} WHERE {PART} <> 200 + {{number}}"
    finest = f"SELECT {CELL}, {PART}, COUNT(*) FROM {rows} GROUP BY {CELL}, {PART}"
    yield Question(
        "coarser groups from stored ones", ROWS, by_cell("COUNT(*)", rows),
        steps=(Step(sql=finest, fresh=False), Step(Fraction(1, 5), fresh=False)), scenarios=some,
    )  # fmt: skip


def _households() -> Iterator[Question]:
    """Questions about households, whose two people count as one unit."""
    for text in ("COUNT(*)", "SUM(x)", "AVG(x)", "MEDIAN(x)"):
        sql = by_cell(text, HOMES)
        yield Question(f"{text} of homes", HOMES, sql, SEVERAL, scenarios=(ALONE, EMPTY))


def _without_table() -> Iterator[Question]:
    """Questions about units without a table, which are known by the key in other tables."""
    own, same = f"{PERSON}, {CELL}", f"USING ({PERSON})"
    both = f"{EVENTS} AS r JOIN {LOGINS} AS p {same}"
    each = f"SELECT {own}, COUNT(*) AS v FROM {EVENTS} GROUP BY {own}"
    for name, sql in (
        ("COUNT(*)", by_cell("COUNT(*)", EVENTS)),
        (f"COUNT(DISTINCT {PERSON})", by_cell(f"COUNT(DISTINCT {PERSON})", EVENTS)),
        ("join", f"SELECT r.{CELL}, COUNT(*) FROM {both} GROUP BY r.{CELL}"),
        ("AVG of counts", f"SELECT {CELL}, AVG(v) FROM ({each}) AS t GROUP BY {CELL}"),
    ):
        some = (TWICE, EMPTY, KEYLESS)
        yield Question(f"{name} of units without a table", EVENTS, sql, SEVERAL, scenarios=some)


def _beside() -> Iterator[Question]:
    """Whether each group has its own noise, for every law and rule."""
    for text, role, law in LAWS:
        sql = by_cell(text)
        yield Question(f"{text} less another, {law}", ROWS, sql, role, law, scenarios=(BESIDE,))
    for rule, role, law in RULES:
        sql = f"SELECT {WORD}, COUNT(DISTINCT {PERSON}) FROM {PEOPLE} GROUP BY {WORD}"
        name = f"groups less another, {rule}"
        yield Question(name, PEOPLE, sql, role, law, scenarios=(BESIDE,))
