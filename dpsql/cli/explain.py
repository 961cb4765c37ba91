"""``dpsql explain``: shows what would be measured, its protection and its cost. Spends nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from rich.table import Table

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, REFUSED, Usage
from dpsql.cli.numbers import digits, group_thousands
from dpsql.cli.opened import open_session, statement
from dpsql.cli.script import statements
from dpsql.engines.duckdb.statements import list_statements
from dpsql.exact import number
from dpsql.ir.expressions import columns
from dpsql.ledger.shortage import more
from dpsql.price.notes import notes
from dpsql.price.priced import PricedMeasurement, PricedPlan
from dpsql.price.search import every_search
from dpsql.price.show import (
    bounding_text,
    groups_text,
    law_text,
    search_lines,
    statistic_text,
    unit_influence,
)
from dpsql.release.intervals import sources
from dpsql.reuse.rehearsal import StatementPrice, total_costs
from dpsql.reuse.show import explain_sources
from dpsql.service import Session

_LONGEST = 60


def run(chosen: argparse.Namespace) -> int:
    """Price the query and show the plan; no data is read."""
    if chosen.batch is not None:
        return _batch(chosen)
    sql = statement(chosen.sql)
    with open_session(chosen) as session:
        priced = session.prepare(sql)
        for search in every_search(priced):
            _section("What is found out first", list(search_lines(search, list_statements)))
        for part in priced.parts:
            _measurement(part, _uses(priced))
        if priced.plan.publics:
            _section("Read exactly", ["public tables: exact, and free"])
        if said := notes(priced):
            _section("To know", list(said))
        _cost(priced, session)
        for part in priced.parts:
            _statements(part)
    return ANSWERED


def _batch(chosen: argparse.Namespace) -> int:
    """Show a price list; statements that would be refused are listed with the reason."""
    try:
        script = chosen.batch.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise Usage(f"{chosen.batch} cannot be read: {error}") from None
    with open_session(chosen) as session:
        prices = session.price(statements(script))
        terminal.show(_price_list(prices))
        alone, due = total_costs(prices)
        left = session.budget()
        paid = terminal.paid(due, left) if due.epsilon else "nothing"
        _section("Together", [f"{paid}; without stored answers {terminal.paid(alone, left)}"])
        _section("What is left before it", [])
        terminal.show(terminal.accounts(left))
    return REFUSED if any(price.refused for price in prices) else ANSWERED


def _price_list(prices: Sequence[StatementPrice]) -> Table:
    headers = ("", "statement", "epsilon alone", "to pay", "delta", "rho")
    made = terminal.empty_table(headers, (0, 2, 3, 4, 5))
    for place, price in enumerate(prices, 1):
        text = " ".join(price.statement.split())
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        numbers = [""] * 4
        if price.refused is None:
            due = price.due
            numbers = list(map(more, (price.alone.epsilon, due.epsilon, due.delta, due.rho)))
        made.add_row(str(place), terminal.plain(short), *numbers)
        if price.refused is not None:
            first = price.refused.first
            made.add_row("", terminal.mute_text(f"{first.code}: {first.headline}"), "", "", "", "")
    return made


def _measurement(part: PricedMeasurement, uses: dict[int, list[str]]) -> None:
    unit = part.measurement.privacy.unit
    _section("What is measured", [f"{groups_text(part)}, from rows that each belong to one {unit}"])
    _section(f"How one {unit} is bounded", bounding_text(part).split(", "))
    _section("Noise", [])
    terminal.show(_noise(part, uses))


def _statements(part: PricedMeasurement) -> None:
    own, *others = list_statements(part)
    title = "SQL that the engine would run"
    _section(f"{title} if no condition below holds" if others else title, own.sql.splitlines())
    for other in others:
        _section("SQL that the engine would run instead", [f"{other}", *other.sql.splitlines()])


def _noise(part: PricedMeasurement, uses: dict[int, list[str]]) -> Table:
    unit = part.measurement.privacy.unit
    headers = ("  for", "number", f"one {unit} moves it by", "noise", "19 times in 20 within")
    made = terminal.empty_table(headers, (2, 4))
    rows = [
        (uses.get(column.number, []), item)
        for column, item in zip(part.measurement.columns, part.noised, strict=True)
    ]
    if part.selection is not None and part.selection.shares is None:
        rows.append((["choosing groups"], part.selection.units))
    for used, item in rows:
        width = item.half_width
        made.add_row(
            terminal.plain("  " + (", ".join(used) or "elsewhere")),
            terminal.plain(statistic_text(item.statistic)),
            number(unit_influence(item)),
            terminal.plain(law_text(item)),
            f"± {group_thousands(width, digits([width], 3))}",
        )
    return made


def _uses(priced: PricedPlan) -> dict[int, list[str]]:
    """The output columns that use each released column, where this is known."""
    found: dict[int, list[str]] = {}
    outputs = priced.plan.columns
    for output, source in zip(outputs, sources(priced.plan.output, outputs), strict=True):
        for column in [] if source is None else columns(source):
            names = found.setdefault(column.number, [])
            if output.name not in names:
                names.append(output.name)
    return found


def _cost(priced: PricedPlan, session: Session) -> None:
    if not priced.parts:
        _section("Cost", ["nothing: no private table is read"])
        return
    cost = priced.price
    rho = f" (rho {number(cost.rho)})"
    again = "asked again, the stored answer is free"
    label = terminal.paid(cost, ())
    _section("Cost", [f"{label}{rho}; {again}"])
    found = session.sources(priced)
    if found is not None and (stored := explain_sources(priced, found)):
        _section("What is stored already", list(stored))
    _section("What is left before it", [])
    terminal.show(terminal.accounts(session.budget()))


def _section(title: str, lines: list[str]) -> None:
    sys.stdout.writelines(_lines(title, lines))
    sys.stdout.flush()


def _lines(title: str, lines: list[str]) -> Iterator[str]:
    yield f"\n{title}\n"
    yield from (f"  {line}\n" for line in lines)
