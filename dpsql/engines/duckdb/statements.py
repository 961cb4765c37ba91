"""The texts of the statements that may run for a measurement. Each is written once."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from dpsql.effort import pause_counting
from dpsql.engines.duckdb.statement_form import form_of
from dpsql.engines.duckdb.write import write
from dpsql.ir.alternatives import Statement
from dpsql.ir.statements import Query
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.price.priced import PricedMeasurement
from dpsql.price.show import RunsIf
from dpsql.rewrite.statement import statement_of

RELATION = 8_000
"""Roughly the bytes that the relation of a statement takes."""


@dataclass(frozen=True, slots=True)
class StatementText:
    """The text of a statement, and a digest of its form."""

    sql: str
    form: bytes


_MADE = Cache[int, tuple[PricedMeasurement, Statement]](
    Use.CACHED_STATEMENTS, 512, size=lambda _, kept: RELATION * (1 + len(kept[1].alternatives))
)
"""Statements by the ``id`` of the measurement. The entry keeps it alive, so the id is unique."""
_WRITTEN = Cache[int, tuple[Query, StatementText]](
    Use.CACHED_STATEMENTS, 1024, size=lambda _, kept: RELATION + len(kept[1].sql)
)
"""Texts by the ``id`` of the relation, in the same way."""


def statement_for(part: PricedMeasurement) -> Statement:
    """The statement that an engine may run for a measurement.

    Its steps are not counted: they are no more than those of planning, and the count must not show
    whether the statement was made before.
    """
    found = _MADE.get(id(part))
    if found is not None and found[0] is part:
        return found[1]
    with pause_counting():
        made = statement_of(part)
    _MADE.put(id(part), (part, made))
    return made


def statement_text(query: Query) -> StatementText:
    """The text of a statement's relation. Its steps are not counted either."""
    found = _WRITTEN.get(id(query))
    if found is not None and found[0] is query:
        return found[1]
    with pause_counting():
        sql, form = write(query), form_of(query)
        alike = sql if form is query else write(form)
        data = alike.encode("utf-8", "surrogatepass")
        text = StatementText(sql, blake2b(data, digest_size=32, person=b"form").digest())
    _WRITTEN.put(id(query), (query, text))
    return text


def list_statements(part: PricedMeasurement) -> tuple[RunsIf, ...]:
    """Every statement that may run for a measurement: its own, then its alternatives in order."""
    made = statement_for(part)
    others = (RunsIf(a.condition, statement_text(a.relation).sql) for a in made.alternatives)
    return RunsIf("", statement_text(made.relation).sql), *others
