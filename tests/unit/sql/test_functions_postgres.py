"""PostgreSQL is the default dialect: constants and functions answer what it answers.

``postgres_scalars.tsv`` was written once by a real server. Differences are listed here, each with
its reason; whatever PostgreSQL fails on is refused or NULL.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.relations import Writer
from dpsql.policy.model import Allowance, Policy
from dpsql.policy.model import DataSource as Data
from dpsql.sql.bind import bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parse import Source, parse

FIXTURE = Path(__file__).with_name("postgres_scalars.tsv")
ROWS = [
    tuple(line.split("\t"))
    for line in FIXTURE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
NOTHING = Catalog(
    Policy(
        path=Path("none.yaml"),
        source=Data("duckdb", Path("none.duckdb")),
        data_version="1",
        units={},
        tables={},
        dataset=Allowance(Fraction(1), Fraction(0), "basic"),
        roles={},
        ledger=Path("none.ledger"),
        version="1",
        answers_key="1",
    ),
    datetime(2025, 1, 1, tzinfo=UTC),
    frozenset(),
)
DIFFERENT: dict[str, str] = {}
TYPES = {
    "integer": ("BIGINT",),
    "bigint": ("BIGINT",),
    "numeric": ("BIGINT", "DOUBLE"),
    "double precision": ("BIGINT", "DOUBLE"),  # rounding a whole number leaves it whole
    "boolean": ("BOOLEAN",),
    "text": ("VARCHAR",),
    "character varying": ("VARCHAR",),
    "date": ("DATE",),
    "timestamp without time zone": ("TIMESTAMP",),
}
NUMBERS = ("integer", "bigint", "numeric", "double precision")


def answer(text: str) -> tuple[str, str | None]:
    """The type and text of an expression's value, through the whole of parse, bind and render."""
    bound = bind(parse(Source(f"SELECT {text}")), NOTHING)
    sql = Writer().select(bound.relation)
    with duckdb.connect() as engine:
        query = f"SELECT typeof(v), CAST(v AS VARCHAR) FROM ({sql}) AS q(v)"
        [(kind, value)] = engine.execute(query).fetchall()
    return kind, value


def same(theirs: str, ours: str | None, kind: str) -> bool:
    if ours is None or theirs == "NULL":
        return ours is None and theirs == "NULL"
    if kind in NUMBERS:
        return float(theirs) == pytest.approx(float(ours), rel=1e-12, abs=0)
    if kind == "boolean":
        return {"true": "t", "false": "f"}.get(ours, ours)[:1] == theirs[:1]
    return theirs == ours


@pytest.mark.parametrize(("text", "kind", "theirs"), ROWS, ids=[r[0] for r in ROWS])
def test_answers_are_those_of_postgres(text: str, kind: str, theirs: str) -> None:
    if kind == "error":
        assert _fails(text)
        return
    engine_type, ours = answer(text)
    assert engine_type in TYPES[kind]
    if text in DIFFERENT:
        assert not same(theirs, ours, kind)
        assert ours == DIFFERENT[text]
    else:
        assert same(theirs, ours, kind), (theirs, ours)


def _fails(text: str) -> bool:
    """Refused before any row is read, or NULL."""
    try:
        return answer(text)[1] is None
    except Refused:
        return True
