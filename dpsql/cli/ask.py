"""The questions of ``dpsql init --ask``, and the error of three sample questions under a draft.

The errors follow from the draft alone: no row is read to predict them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from dpsql.cli import terminal
from dpsql.cli.exits import Usage
from dpsql.cli.forecast_tables import width_text
from dpsql.diagnostics.quote import quote
from dpsql.diagnostics.refusal import PolicyError
from dpsql.forecast.planner import open_planner
from dpsql.forecast.questions import sample_questions
from dpsql.forecast.report import SIZE, Forecaster
from dpsql.ledger.query_cap import cap_of
from dpsql.policy.draft import Decisions, Suggestions
from dpsql.policy.guess import GuessedUnit, guess_holders, unique_key, unled_tables, ways_to_unit
from dpsql.policy.load import parse
from dpsql.policy.source import SourceDescription

T = TypeVar("T")
MOST = 9
"""The most units that are offered."""
MOST_EPSILON = 50_000_000
"""The most that one question may cost, so that twenty fit into a data set."""


def ask_unit(units: Sequence[GuessedUnit]) -> GuessedUnit | None:
    """Ask who is protected. The first unit is the guess."""
    if not units:
        return None
    _print("Who is protected? All answers together tell little about any one of these:")
    offered = units[:MOST]
    for number, unit in enumerate(offered, 1):
        _print(f"  {number}. {describe_unit(unit)}")

    def read(text: str) -> GuessedUnit | None:
        known = text.isdecimal() and 1 <= int(text) <= len(offered)
        return offered[int(text) - 1] if known else None

    return _ask("Type a number (Enter for 1)", "1", read, f"type 1 to {len(offered)}")


def describe_unit(unit: GuessedUnit) -> str:
    """A unit in words.

    >>> describe_unit(GuessedUnit("rider", None, ("rider_id",)))
    'a rider: all rows with the same rider_id'
    >>> describe_unit(GuessedUnit("visit", "visits", ()))
    'each row of visits by itself'
    """
    key = ", ".join(unit.key)
    if not unit.key:
        return f"each row of {unit.table} by itself"
    if unit.table is None:
        return f"a {unit.name}: all rows with the same {key}"
    return f"a {unit.name}: a row of {unit.table} ({key}), and all rows that lead to it"


def ask_rows(
    description: SourceDescription, unit: GuessedUnit, found: Suggestions | None
) -> dict[str, int]:
    """Ask how many rows of one unit count, for each table where a unit may have several.

    Numbers that were read from the data, and are kept, are left out.
    """
    held, ways = guess_holders(description, unit), ways_to_unit(description, unit)
    rows = {}
    for name, there in description.tables.items():
        leading = held.get(name) or (ways[name][0].columns if name in ways else None)
        key = unique_key(there)
        if leading is None or name == unit.table or (key and set(key) <= set(leading)):
            continue
        read = None if found is None else found.rows.get(name)
        offer = "" if read is None else f" (Enter for {read}, read from the data)"
        answer = _ask(
            f"How many rows of {name} may one {unit.name} have? If one has more, they count less; a larger"
            f" number makes answers noisier{offer}",
            "" if read is None else str(read), _whole, "type a whole number from 1",
        )  # fmt: skip
        if answer != read:  # the draft marks what was read
            rows[name] = answer
    return rows


def ask_public(description: SourceDescription, unit: GuessedUnit) -> frozenset[str]:
    """Ask which of the tables that lead to no unit are public."""
    may = unled_tables(description, unit)
    return frozenset(
        name
        for name in description.tables
        if name in may
        and _ask(
            f"Is {name} public: is nothing in it about a {unit.name}? It is then answered exactly (yes or no;"
            " Enter for no)", "no", {"yes": True, "no": False}.get, "type yes or no",
        )
    )  # fmt: skip


def ask_epsilon(decisions: Decisions, draft: Callable[[Decisions], str]) -> Decisions:
    """Show the error of sample questions, and ask what one may cost, until the owner agrees.

    ``draft`` makes a text whose data has an absolute path. If something is left to fill in, no
    error can be shown.
    """
    decisions = replace(decisions, epsilon=Fraction(1, 20))
    while True:
        try:
            _show_errors(draft(decisions))
        except PolicyError as error:
            _print(
                f"Errors can be shown once the draft is complete: {quote(error.problems[0], 200)}"
            )
            return decisions
        answer = _ask(
            "Type another epsilon for one question: twice as much halves the errors, and tells twice as much"
            " (Enter keeps it)", "keep", _epsilon, "type a number above 0, such as 0.1",
        )  # fmt: skip
        if answer == 0:
            return decisions
        decisions = replace(decisions, epsilon=answer)


def _show_errors(text: str) -> None:
    """Print how far the answers to sample questions may be off, under a draft. No row is read."""
    policy = parse(text, Path("policy.yaml").absolute(), "policy.yaml")
    role = next(iter(policy.roles))
    with open_planner(policy) as planner:
        report = Forecaster(planner, role).report(sample_questions(policy, role))
    made = terminal.empty_table(("question", "noise, 19 times in 20 within"), (1,))
    for question, forecast in zip(report.questions, report.forecasts, strict=True):
        said = f"refused ({forecast.refused})"
        if forecast.prediction is not None:
            said = width_text(forecast.prediction, forecast.prediction.columns[0], SIZE)
        made.add_row(terminal.plain(question.text), said)
    _print(f"At epsilon {float(cap_of(policy.roles[role]).label):g} for one question:")
    terminal.show(made)


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and 1 <= int(text[:12]) <= 10**9 else None


def _epsilon(text: str) -> Fraction | None:
    """The number that was typed; 0 to keep the present one."""
    if text == "keep":
        return Fraction(0)
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
    return found if 0 < found <= MOST_EPSILON else None


def _ask(prompt: str, default: str, read: Callable[[str], T | None], wrong: str) -> T:
    """Ask until ``read`` understands the answer; an empty one stands for ``default``."""
    while True:
        sys.stdout.write(f"{prompt}: ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise Usage("the input ended before all questions were answered; nothing was written")
        found = read(line.strip().lower() or default)
        if found is not None:
            return found
        _print(f"  That was not understood: {wrong}.")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
