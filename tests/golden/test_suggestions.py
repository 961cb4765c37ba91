"""What is suggested is answered, keeps what was asked, and is there: over every statement that is refused.

By day every other statement is asked, and all of them every night.

``pytest tests/golden/test_suggestions.py -s -k four_of_five`` prints the figures by corpus and by code.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator

import sqlglot
from shop import outcome
from sqlglot import exp
from support.daily import some
from support.refused import Asked, asked
from test_refusals import REQUESTS

from dpsql.diagnostics.refusal import Refused
from dpsql.diagnostics.render import is_sql
from dpsql.effort import limit_effort
from dpsql.service import settings

LEAST = 0.8
"""Of refusals that have a suggestion in SQL which is answered."""


def ask(one: Asked, text: str) -> Refused | None:
    """Why a session under the same policy and request refuses a text; None where it answers."""
    try:
        if settings.apply_set(settings.Settings(), text) is not None:
            return None
        text = settings.match_explain(text) or text
        with limit_effort():
            found = outcome(
                text, one.parameters, policy=one.policy,
                request=REQUESTS[one.request], dialect=one.dialect,
            )  # fmt: skip
    except Refused as refused:
        return refused
    return found if isinstance(found, Refused) else None


@functools.cache
def refusals() -> tuple[tuple[Asked, Refused], ...]:
    found = ((one, ask(one, one.text)) for one in some([*asked()], 0, 2))
    return tuple((one, refused) for one, refused in found if refused is not None)


def suggested() -> Iterator[tuple[Asked, Refused]]:
    return ((one, refused) for one, refused in refusals() if is_sql(refused.instead))


@functools.cache
def wrong() -> tuple[str, ...]:
    """The suggestions that are refused."""
    found = []
    for one, refused in suggested():
        again = ask(one, refused.instead)
        if again is not None:
            found.append(f"{one}\n{one.text}\n{refused.instead}\n{again}")
    return tuple(found)


def test_every_suggestion_is_answered() -> None:
    assert not wrong(), "\n\n".join(wrong()[:5])


def figures() -> str:
    """How many refusals there are, and how many have a suggestion in SQL: by corpus and by code."""
    every, told = Counter[str](), Counter[str]()
    for one, refused in refusals():
        keys = ("all", f"corpus {one.corpus}", refused.code)
        every.update(keys)
        told.update(keys if is_sql(refused.instead) else ())
    lines = [
        f"{key}: {told[key]} of {every[key]} ({100 * told[key] // every[key]} %)"
        for key in sorted(every)
    ]
    return "\n".join(lines) + "\n"


def test_four_of_five_refusals_suggest_sql() -> None:
    print(figures())
    assert sum(1 for _ in suggested()) >= LEAST * len(refusals()), figures()


# --- what a suggestion keeps ----------------------------------------------------------------


def plain(text: str) -> str:
    """A text without blanks, brackets, case, and characters that are no text."""
    numbered = re.sub(r"\$\d+", "?", text)
    return re.sub(r"[\s()\"\x00\ud800-\udfff]+", "", numbered).lower()


def parts(tree: exp.Expr, dialect: str) -> Iterator[str]:
    """Tables, conditions, keys of groups and names of outputs."""
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    yield from (t.name for t in tree.find_all(exp.Table) if t.name and t.name not in own)
    for select in tree.find_all(exp.Select):
        where, group = select.args.get("where"), select.args.get("group")
        if where is not None:
            whole = where.this
            conditions = whole.flatten() if isinstance(whole, exp.And) else [whole]
            yield from (c.sql(dialect=dialect) for c in conditions)
        if group is not None:
            yield from (k.sql(dialect=dialect) for k in group.expressions)
        yield from (item.alias for item in select.expressions if item.alias)


def changed(one: Asked, refused: Refused) -> bool:
    """Whether the refusal is about names, which are then other ones, or no statement is suggested."""
    return refused.code in ("DP104", "DP105", "DP305", "DP401", "DP405") or not one.text.strip()


def lost(one: Asked, refused: Refused) -> list[str]:
    """What neither stands in the suggestion nor is named in its notes."""
    try:
        asked_for = sqlglot.parse_one(one.text, read=one.dialect)
        sql, *notes = refused.instead.split("\n--")
        told = sqlglot.parse_one(sql, read=one.dialect).sql(dialect=one.dialect)
    except sqlglot.errors.SqlglotError:
        return []
    said, written = plain(told + refused.instead), plain(one.text)
    if "onlycount*" in said or "notanswered" in said or "dpsql.policy" in said:
        return []  # that nothing else is kept is what the note says
    left_out = [plain(re.split("without|instead of", note)[-1]) for note in notes]
    found = []
    for part in parts(asked_for, one.dialect):
        kept = plain(part)
        if kept not in written or kept.isdigit():
            continue  # the generator writes it in another way, or it is a position
        rest = kept
        for text in left_out:
            rest = rest.replace(text, "") if text else rest
        found += [] if kept in said or rest in said else [part]
    return found


def test_what_a_suggestion_does_not_keep_is_said() -> None:
    found = [
        f"{one}\n{one.text}\n{refused.instead}\n{gone}"
        for one, refused in suggested()
        if not changed(one, refused) and len(one.text) < 200 and (gone := lost(one, refused))
    ]
    assert not found, f"{len(found)}\n" + "\n\n".join(found[:20])
