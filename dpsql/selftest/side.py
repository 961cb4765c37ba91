"""One of two neighbouring databases: its answers, and the charges in its ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.exact import float_up
from dpsql.ledger.accounts import accounts_for
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.privacy.accounting import epsilon_of_zcdp
from dpsql.selftest.bound import ABSENT, NULL, Claim, Samples
from dpsql.selftest.questions import Question
from dpsql.service import Service

_DELTAS = (1e-3, 0.01, 0.05, 0.2)
"""A charge in rho is a claim for every delta; it is tested at these."""


class Side:
    """One database, asked the same question repeatedly.

    ``columns`` has the samples: those of each step of the question, and their mean if there are
    several steps. ``shapes`` must not differ between neighbours. ``faults`` must be empty.
    ``refused`` is the refusal that ended the asking.
    """

    def __init__(
        self, service: Service, question: Question, cells: int, *, beside: bool = False
    ) -> None:
        """Open a session and note the spending before.

        A sample is the value of a cell; with ``beside``, it is the value minus that of the next
        cell.
        """
        self._service, self._question, self._cells = service, question, cells
        self._beside = beside
        self._session = service.session(question.role)
        self._session.settings = replace(
            self._session.settings, bounding=question.bounding, mechanism=question.mechanism,
            dialect=question.dialect, search="on" if question.search else "off", consistent=question.consistent,
            empty_groups=question.empty_groups, show="always",
        )  # fmt: skip
        self._before, self._asked = self._spent(), 0
        self._samples: list[list[Samples]] = []
        self.shapes: set[str] = set()
        self.faults: set[str] = set()
        self.refused: Refused | None = None

    def ask(self) -> bool:
        """Ask once more; False if it was refused or failed."""
        self._asked += 1
        found = []
        try:
            for step in self._question.steps:
                self._session.settings = replace(
                    self._session.settings, epsilon=step.epsilon, fresh=step.fresh
                )
                reply = self._session.execute(self._question.text(step, self._asked))
                self.shapes.add(str(reply.table.schema))
                found.append(self._cellwise(reply.table))
        except Refused as refused:
            self.shapes.add(str(refused))
            self.refused = refused
            return False
        except EngineFailed:
            self.faults.add("the engine failed")
            return False
        if len(found) > 1:
            found.append(_mean(found))
        self._samples.append(found)
        return True

    @property
    def columns(self) -> list[Samples]:
        """The samples of all askings, column by column."""
        return [np.concatenate(column) for column in zip(*self._samples, strict=True)]

    @property
    def charge(self) -> tuple[float, float, float, float]:
        """Epsilon, delta, rho and threshold delta of one asking, according to the ledger."""
        total, times = self._spent() - self._before, max(1, self._asked)
        scaled = zip(total.numbers, (NANO, ATTO, NANO, ATTO), strict=True)
        epsilon, delta, rho, threshold = (n / unit / times for n, unit in scaled)
        return epsilon, delta, rho, threshold

    def _spent(self) -> Charge:
        """The least spending of all accounts, number by number: each account promises this."""
        now = self._service.clock()
        accounts = accounts_for(self._service.policy, self._question.role, now=now)
        balances = self._service.ledger.balances(accounts)
        numbers = zip(*(balance.spent.numbers for balance in balances), strict=True)
        return Charge(*map(min, numbers))

    def _cellwise(self, table: pa.Table) -> Samples:
        """The values of the last column, by the cell that the first column names."""
        keys, values = table.column(0).combine_chunks(), _numbers(table.column(-1))
        known = pc.is_valid(keys)
        keys, values = keys.filter(known), values[np.asarray(known)]
        if pa.types.is_string(keys.type):
            if not keys.equals(keys.sort()):
                self.faults.add("rows are not in the order of their keys")
            own = pc.starts_with(keys, "w")
            keys = pc.utf8_slice_codeunits(keys.filter(own), 1).cast(pa.int64())
            values = values[np.asarray(own)]
        places = np.asarray(keys).astype(np.int64) - 1
        if pa.types.is_integer(table.column(0).type) and np.any(np.diff(places) < 0):
            self.faults.add("rows are not in the order of their keys")
        found = np.full(self._cells, ABSENT)
        found[places] = values
        return _less(found[0::2], found[1::2]) if self._beside else found


def claims_of(charge: tuple[float, float, float, float]) -> tuple[Claim, ...]:
    """The claims of a charge: its (epsilon, delta), and one from its rho for each of ``_DELTAS``.

    A claim that is weaker than the first is left out.
    """
    epsilon, delta, rho, threshold = charge
    plain, exact = Claim(epsilon, delta), (Fraction(rho), [Fraction(d) for d in _DELTAS])
    curve = (
        []
        if rho == 0
        else [Claim(float_up(epsilon_of_zcdp(exact[0], d)), float(d) + threshold) for d in exact[1]]
    )
    return (plain, *(c for c in curve if c.epsilon < epsilon or c.delta < delta))


def _less(one: Samples, other: Samples) -> Samples:
    """The difference of two answers; absent or NULL if either is."""
    least = np.minimum(one, other)
    return np.asarray(np.where(least <= ABSENT, least, one - other))


def _mean(columns: Sequence[Samples]) -> Samples:
    """The mean of several answers about each cell; absent or NULL if any is."""
    least = np.min(columns, axis=0)
    return np.asarray(np.where(least <= ABSENT, least, np.mean(columns, axis=0)))


def _numbers(column: pa.ChunkedArray) -> Samples:
    """Answers of any type, as numbers that differ where the answers do."""
    array = column.combine_chunks()
    if pa.types.is_string(array.type):
        array = array.dictionary_encode()
        words = [int.from_bytes(w.encode()[:6], "big") for w in array.dictionary.to_pylist()]
        array = pa.array(words, pa.int64()).take(array.indices)
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return np.asarray(pc.fill_null(array.cast(pa.float64()), NULL))
