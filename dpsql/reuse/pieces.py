"""The pieces of a release: the parts that are stored, recalled and added up as one.

Over public groups, each statistic is a piece. There are three exceptions. A measurement whose
groups must pass a threshold is one piece, since its numbers belong to its groups. A measurement
whose weights depend on all its sums together is one piece, since a sum alone would have other
weights. A plan that uses its own released numbers below a later measurement is one piece, since the
later questions contain the earlier numbers.

Claim: a stored release under the family of a piece answers the piece: its numbers are of the same
    rows, groups, statistic and bounds, under the same shape of the policy and the same data
    version. Only the noise may differ, and is compared number by number.
Assumes: ``canonical`` (questions of equal text have equal exact answers),
    ``policy.version.answers_key``.
Argument: ``family`` covers everything but the noise. All of it follows from statements, the policy
    and released numbers, so whether something is recalled reveals nothing about the data. Reading a
    release again, by anyone who may ask the query, is post-processing and costs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import assert_never

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
)
from dpsql.catalog.statistic import Quantile, Rows, Total, Units, Values
from dpsql.engines.duckdb.groups import words_of, write_groups, write_public
from dpsql.engines.duckdb.relations import Writer
from dpsql.ir.expressions import Column, Expression, Literal, columns, substitute
from dpsql.plan.contents import contents
from dpsql.plan.covered import is_within_ends
from dpsql.plan.nodes import Cells
from dpsql.policy.types import Kind
from dpsql.price.priced import Chosen, Noised, PricedMeasurement, PricedPlan
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, to_plain
from dpsql.reuse.canonical import NotCanonical, Question, question
from dpsql.reuse.fingerprint import fingerprint

_LABELS = (Kind.DOUBLE, Kind.TEXT)
"""Kinds of keys that have, or once had, equal values with different bytes."""
AS_GOOD = 1.005
"""Noise that is wider by half a percent counts as equal: different grids differ by that."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Some statistics of a measurement, by their positions."""

    part: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """The names under which a piece is stored, and its accuracy.

    ``key`` depends on the noise; ``family`` does not. ``noise`` has, for each number of a group,
    its standard deviation and the half width of its 95 % interval. A piece with a ``base`` may be
    added up to coarser groups; ``about`` describes its own groups for this. ``coarse`` says which
    other pieces this one may be added up from.
    """

    slots: tuple[Slot, ...]
    key: str
    family: str
    noise: tuple[float, ...]
    base: str = ""
    about: str = ""
    coarse: Coarse | None = None

    def served_by(self, noise: Sequence[float]) -> bool:
        """Whether a release of this family with that noise is good enough."""
        return len(noise) == len(self.noise) and all(
            stored <= asked * AS_GOOD for stored, asked in zip(noise, self.noise, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Coarse:
    """The question of a piece, in the terms in which stored finer pieces are described."""

    base: str
    question: Question = field(compare=False)

    def from_finer(self, about: str, *, declared: bool = False) -> Finer | None:
        """How to add the piece up from a stored one; None if the stored one does not determine it.

        With ``declared``, rows are assumed to have values that the policy lists.

        Claim: the exact groups of the piece are sums of exact groups of the stored one, where rows
            have declared values.
        Assumes: both are of one data version.
        Argument: both have one base, hence the same rows before conditions, the same statistic and
            the same unit; the stored one clips nothing. The conditions of the stored one are among
            those of the piece. The other conditions of the piece are functions of stored keys, and
            so are the keys of the piece. Every row of the piece is in a stored group: ``open``
            names the keys that may have values outside the stored groups. Unless rows have
            ``declared`` values, each of these is also a key of the piece, or kept within the stored
            groups by its conditions.
        """
        stored = json.loads(about)
        doubtful = () if declared else stored.get("open", stored["keys"])
        if not all(map(self._held, doubtful)):
            return None
        asked = self.question
        extra = {_short(text): node for text, node in asked.conditions.items()}
        if not extra.keys() >= set(stored["conditions"]):
            return None
        known = {name: i for i, name in enumerate(stored["keys"])}

        def stored_key(node: Expression) -> Expression | None:
            at = None if isinstance(node, Literal) else known.get(_short(asked.text(node)))
            return None if at is None else Column(-1 - at, "", node.shape)

        keys = tuple(substitute(node, stored_key) for node in asked.values)
        wanted = (node for name, node in extra.items() if name not in stored["conditions"])
        conditions = tuple(substitute(node, stored_key) for node in wanted)
        inside = all(c.number < 0 for node in (*keys, *conditions) for c in columns(node))
        return Finer(keys, conditions) if inside else None

    def _held(self, name: str) -> bool:
        """Whether the piece has no row whose value of a stored key is in no stored group."""
        asked, tests = self.question, tuple(self.question.conditions.values())
        if name in map(_short, asked.keys):
            return True
        named = (c for test in tests for c in columns(test) if _short(asked.text(c)) == name)
        return any(is_within_ends(column, tests) for column in named)


@dataclass(frozen=True, slots=True)
class Finer:
    """Keys and conditions over the keys of a stored piece: columns -1, -2, and so on."""

    keys: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


def pieces(priced: PricedPlan, answers_key: str) -> tuple[Piece, ...]:
    """The pieces of a plan's release, under a policy's key for answers (``policy.version``)."""
    plan = priced.plan
    if plan.lookups:
        slots = tuple(_all(part, i) for i, part in enumerate(priced.parts))
        asked = [
            _asked(part, _question(part), slot.columns)
            for part, slot in zip(priced.parts, slots, strict=True)
        ]
        lookups = [[v.name, v.form, Writer().select(v.relation)] for v in plan.lookups]
        publics = [[p.name, write_public(p), *p.contents] for p in plan.publics]
        return (_piece(priced, slots, [answers_key, asked, lookups, publics]),)
    return tuple(
        piece
        for i, part in enumerate(priced.parts)
        for piece in _of_part(priced, i, part, answers_key)
    )


def _of_part(priced: PricedPlan, at: int, part: PricedMeasurement, answers: str) -> Iterator[Piece]:
    whole = _all(part, at)
    asked = _question(part)
    together = _weighs_values(part.bounding) and len(part.noised) > 1
    if asked is None or part.selection is not None or together:
        yield _piece(priced, (whole,), [answers, _asked(part, asked, whole.columns)])
        return
    for position in whole.columns:
        slot = Slot(at, (position,))
        piece = _piece(priced, (slot,), [answers, _asked(part, asked, slot.columns)])
        yield _with_base(piece, part, position, asked, answers)


def _with_base(
    piece: Piece, part: PricedMeasurement, position: int, asked: Question, answers: str
) -> Piece:
    """The piece, described so that it can be added up from others, or others from it."""
    if not _additive(part, position):
        return piece
    base = _digest(
        [answers, asked.sources, asked.statistics[position], asked.unit, _constants(part, position)]
    )
    coarse = Coarse(base, asked)
    if not asked.keys or clips(part):
        return replace(piece, coarse=coarse)
    cells = part.measurement.cells
    assert cells is not None, "groups that pass a threshold are one piece"
    about = {
        "conditions": [_short(text) for text in asked.conditions],
        "keys": [_short(text) for text in asked.keys],
        "open": [_short(asked.keys[i]) for i in sorted(cells.open)],
    }
    return replace(piece, coarse=coarse, base=base, about=json.dumps(about))


def _additive(part: PricedMeasurement, position: int) -> bool:
    """Whether the statistic of a union of groups is the sum of their statistics."""
    statistic = part.measurement.statistics[position]
    terms = part.measurement.terms
    if terms is not None and (terms.rows is not None or terms.groups is not None):
        return False  # the query's own limits decide what a unit contributes
    if isinstance(statistic, Units):  # a unit with one row is in one group
        return part.measurement.privacy.max_rows == 1
    return isinstance(statistic, Rows | Total) and statistic.cap is None


def clips(part: PricedMeasurement) -> bool:
    """Whether bounding changes the contribution of units that are as the policy declares."""
    return not part.bounding.keeps_all(part.measurement.privacy.max_rows)


def _weighs_values(bounding: Bounding) -> bool:
    """Whether the weight of a row depends on all sums of its measurement."""
    return isinstance(bounding, RowWeights | WeightsAndGroups) and bounding.valued


def _all(part: PricedMeasurement, at: int) -> Slot:
    return Slot(at, tuple(range(len(part.noised))))


def _piece(priced: PricedPlan, slots: tuple[Slot, ...], asked: list[object]) -> Piece:
    family = _digest(asked)
    laws: list[object] = []
    noise: list[float] = []
    for slot in slots:
        part = priced.parts[slot.part]
        for position in slot.columns:
            item = part.noised[position]
            laws.append([repr(item.noise), str(item.shift), *_of_halves(item)])
            noise += widths(part.noise(position) or item)
        if part.selection is not None:
            laws.append([repr(part.selection.units.noise), part.selection.threshold])
            noise += (*widths(part.selection.units), float(part.selection.threshold))
    return Piece(slots, _digest([family, laws]), family, tuple(noise))


def _of_halves(item: Noised | Chosen) -> tuple[str, ...]:
    """The step of the noise of halves, which does not follow from the shift."""
    return () if isinstance(item, Chosen) or item.halves is None else (str(item.step),)


def widths(noise: NoiseSum | Noised | Chosen) -> tuple[float, float]:
    """The accuracy of a number: its standard deviation and the half width of its 95 % interval."""
    if isinstance(noise, NoiseSum):
        return noise.standard_deviation(), noise.half_width()
    return noise.standard_deviation, noise.half_width


def key_of(family: str, noise: NoiseSum) -> str:
    """The key of a piece of this family that was computed from several releases."""
    return _digest([family, to_plain(noise)])


def _question(part: PricedMeasurement) -> Question | None:
    """The question in canonical text; None if it has none, as when values are not known yet."""
    try:
        return question(part.measurement)
    except NotCanonical:
        return None


def _asked(
    part: PricedMeasurement, words: Question | None, chosen: tuple[int, ...]
) -> list[object]:
    """The full description of some statistics, except their noise and the grids that fit it."""
    measurement = part.measurement
    least = None if measurement.terms is None else measurement.terms.least
    asked: list[object] = [
        _with_contents(part) if words is None else words.words(chosen),
        _cells(measurement.cells),
        _limits(part.bounding),
        [_constants(part, i) for i in chosen],
        None if part.selection is None else part.selection.shares,
        [f.shape.kind.value for f in measurement.key_fields],
    ]
    if part.selection is not None and any(f.shape.kind in _LABELS for f in measurement.key_fields):
        asked.append("canonical labels")  # older releases may have keys with one row's own bytes
    # Groups below a least number of units are left out, so another threshold is another question.
    return asked if least is None else [*asked, least]


def _limits(bounding: Bounding) -> str:
    """The limits of a strategy, in the exact form that stored releases are named with.

    The number of bits of weights is not part of it. A limit on rows read from a copy is the same
    limit as one on weights: units that are as declared contribute the same.
    """
    own: dict[str, object]
    match bounding:
        case OneRow():
            own = {}
        case RowWeights(rows=rows, valued=valued):
            own = {"rows": rows, "valued": valued}
        case PreparedRows(rows=rows):
            own = {"rows": rows}
        case UnitTotals(per_group=per_group):
            own = {"grouped": True, "per_group": per_group}
        case GroupCaps(limit=limit, per_group=per_group):
            own = {"grouped": True, "limit": limit, "per_group": per_group}
        case WeightsAndGroups(rows=rows, limit=limit, valued=valued):
            own = {"rows": rows, "grouped": True, "limit": limit, "valued": valued}
        case NormClip(norm=norm):
            own = {"grouped": True, "norm": norm}
        case VectorClip(norm=power, units=units, rows=rows, worth=worth):
            return (
                f"VectorClip({bounding.groups}, {power}, {units}, {rows}, {worth}, {bounding.size})"
            )
        case _:
            assert_never(bounding)
    words = {
        "rows": None, "grouped": False, "groups": bounding.groups, "limit": False,
        "per_group": None, "norm": None, "bits": 0, "size": bounding.size, "ranked": False,
        "valued": False, **own,
    }  # fmt: skip
    return f"Bounding({', '.join(f'{name}={value!r}' for name, value in words.items())})"


def _with_contents(part: PricedMeasurement) -> object:
    """A digest of all that determines the statement, and the contents of its public tables."""
    measured, found = part.measurement, contents(part.measurement.input)
    cells = None if measured.cells is None else write_groups(measured.cells.groups)
    same = fingerprint(
        measured.input, measured.keys, measured.lifted, cells, measured.statistics,
        part.bounding, part.reading, [item.shift for item in part.noised],
    )  # fmt: skip
    return [same, *found] if found else same


def _constants(part: PricedMeasurement, position: int) -> list[str]:
    """The fields of a statistic other than its expressions, and the buckets of a chosen value."""
    item = part.noised[position]
    statistic = item.statistic
    values = [getattr(statistic, f.name) for f in fields(statistic)]
    if isinstance(statistic, Values):
        values = [len(statistic.values)]
    constants = [repr(v) for v in values if not isinstance(v, Expression)]
    if isinstance(statistic, Total | Quantile) and statistic.value.shape.kind is Kind.DOUBLE:
        constants.append("NaN is the upper end")  # in older releases NaN did not count
    if isinstance(item, Chosen) and item.search:
        constants += [repr(item.noise), str(item.deep)]
    return [type(statistic).__name__, repr(getattr(item, "buckets", None)), *constants]


def _cells(found: Cells | None) -> list[object] | None:
    """Public groups by their number and the text of their query, which may list them in any order.

    Groups that public tables list are named by a digest of themselves, since the tables may change.
    """
    if found is None:
        return None
    if found.rows is not None:
        return [found.count, found.rows.digest]
    return [found.count, words_of(found.groups)]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
