"""Suggestions for a refused statement: the most similar statement that is answered.

A refusal has a place and a reason. From these, similar statements are made by changes of the syntax
tree. The nearest ones are tried first, like any statement: they are bound, checked, planned and
priced. A statement that is refused again is not shown; statements near to it are tried later. So a
statement with two faults is changed twice.

Claim: a suggestion depends on the text, the policy and the settings alone, and names no table or
    column that the role may not see.
Assumes: the pure stages depend on nothing else.
Argument: only the pure stages ask for it, with the same catalog as the statement itself. Names come
    from the statement, from that catalog, or from the scope of a statement that is bound with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from sqlglot import exp

from dpsql.diagnostics.quote import STATEMENT, quote
from dpsql.diagnostics.refusal import NotAdmitted, Refusal, Refused
from dpsql.diagnostics.render import is_sql
from dpsql.effort import limit_part, step
from dpsql.sql.allow import LEAVE_OUT
from dpsql.sql.parse import Source, read
from dpsql.sql.suggest.candidate import LOOK_UP, Candidate, Case, Change
from dpsql.sql.suggest.change import apply_edits
from dpsql.sql.suggest.leave_out import left_out
from dpsql.sql.suggest.names import catalog_question, renamed_table
from dpsql.sql.suggest.places import innermost, upward
from dpsql.sql.suggest.respell import respell_node
from dpsql.sql.suggest.words import respelled_words
from dpsql.sql.suggest.writer import write

MOST_TRIED = 12
"""The most statements that are tried for one suggestion."""
MOST_STEPS = 60_000
"""The most planning steps of all tried statements together: a twentieth of those of a statement."""
LONGEST = STATEMENT // 2
"""Longer statements get no suggestion in SQL, as it would be too long to read."""
_FAREST = 30

Ask = Callable[[Source], object]
"""Plans a statement; raises ``Refused`` if it is not answered."""


def suggest_statement(
    refused: Refused, source: Source, ask: Ask, visible: Sequence[str]
) -> Refused:
    """The same refusal, with the nearest statement that is answered if one is found in time."""
    first = refused.first
    if len(source.text) > LONGEST or is_sql(first.instead):
        return refused
    try:
        with limit_part(MOST_STEPS):
            found = _Search(source, ask, visible).nearest(refused)
    except (Refused, RecursionError):  # the steps are used up
        found = None
    if found is None:
        return refused
    instead = "\n".join((found.text, *(f"-- {_note(note)}" for note in _notes(found, first))))
    told = replace(first, instead=instead)
    if told.instead != instead:  # the suggestion was cut, because it is too long
        return refused
    rest = [told if refusal is first else refusal for refusal in refused.refusals]
    return type(refused)(*rest, text=refused.text)


def _notes(found: Candidate, refusal: Refusal) -> Iterator[str]:
    """Notes on what the suggestion changes, then the advice of the rule if a part was left out."""
    yield from dict.fromkeys(found.notes)
    if found.loses and refusal.instead not in ("", LEAVE_OUT):
        yield refusal.instead


def _note(text: str) -> str:
    return quote(" ".join(text.split()), 200)


@dataclass(slots=True)
class _Search:
    """A search: ``waiting`` is the heap of statements to try, ordered by distance."""

    source: Source
    ask: Ask
    visible: Sequence[str]
    waiting: list[tuple[int, int, Candidate]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def nearest(self, refused: Refused) -> Candidate | None:
        """The first tried statement that is answered, or None."""
        self.seen.add(self.source.text.strip())
        self._spread(Candidate(self.source.text, 0), refused)
        for _ in range(MOST_TRIED):
            if not self.waiting:
                return None
            candidate = heappop(self.waiting)[-1]
            try:
                self.ask(self._source(candidate.text))
            except Refused as again:
                step()
                self._spread(candidate, again)
            except NotAdmitted:  # a defect of dpsql, not a fault of the statement
                continue
            else:
                return candidate
        return None

    def _spread(self, candidate: Candidate, refused: Refused) -> None:
        """Add the statements near to a refused candidate to ``waiting``."""
        source, lost = self._source(candidate.text), candidate.loses
        for near in _near(source, refused.first, self.visible, lost=lost):
            text = near.text.strip()
            distance = candidate.distance + near.distance
            if text and text not in self.seen and distance < _FAREST and len(text) <= STATEMENT:
                self.seen.add(text)
                notes, loses = (*candidate.notes, *near.notes), candidate.loses or near.loses
                whole = Candidate(text, distance, notes, loses)
                heappush(self.waiting, (distance, len(self.seen), whole))

    def _source(self, text: str) -> Source:
        return replace(self.source, text=text)


def _near(
    source: Source, refusal: Refusal, visible: Sequence[str], *, lost: bool
) -> Iterator[Candidate]:
    """Statements without the refused construct; ``lost``: a part has been left out before."""
    for near in respelled_words(source, refusal, visible):
        yield replace(near, loses=bool(near.notes) and near.distance < LOOK_UP)
    try:
        _, tree = read(source)
    except Refused:
        return
    case = Case(source, tree)
    for change in _changes(case, refusal, visible, lost=lost):
        text = write(change.tree, source)
        if text:
            yield Candidate(text, change.distance, change.notes, change.loses)
    if refusal.code == "DP104" or _in_from(tree, refusal):
        yield from catalog_question(source)


def _in_from(tree: exp.Expr, refusal: Refusal) -> bool:
    """Whether the refused construct is in the place of a table."""
    found = innermost(tree, refusal.span)
    return refusal.code in ("DP100", "DP107") and any(
        isinstance(n, exp.Table) for n in upward(found)
    )


def _changes(
    case: Case, refusal: Refusal, visible: Sequence[str], *, lost: bool
) -> Iterator[Change]:
    # A column of a table that was left out is not a misspelling of a remaining column.
    yield from apply_edits(case, () if lost and refusal.code == "DP105" else refusal.edits)
    if refusal.code == "DP104":
        yield from renamed_table(case, refusal.span, visible)
    yield from respell_node(case, refusal)
    yield from left_out(case, refusal.span)
