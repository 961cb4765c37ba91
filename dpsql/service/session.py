"""A session: settings, statements, answers. One for each connection; the account is durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ledger.accounts import Account, accounts_for
from dpsql.ledger.balance import Balance
from dpsql.ledger.shortage import check_cap
from dpsql.ledger.store import Note
from dpsql.pipeline import Payer, answer, prepare
from dpsql.plan.priced import PricedPlan
from dpsql.plan.request import Request
from dpsql.plan.show import show
from dpsql.policy.model import Role
from dpsql.policy.types import Kind, Scalar
from dpsql.release.rows import OutputColumn
from dpsql.service import settings as s
from dpsql.service.reply import Remaining, Reply, made
from dpsql.sql.parse import Source

if TYPE_CHECKING:
    from dpsql.service.service import Service

Parameters = Sequence[Scalar | float | None]
_BUDGET = (
    ("account", Kind.TEXT),
    ("epsilon", Kind.DOUBLE),
    ("delta", Kind.DOUBLE),
    ("spent_epsilon", Kind.DOUBLE),
    ("spent_delta", Kind.DOUBLE),
    ("left_epsilon", Kind.DOUBLE),
    ("left_delta", Kind.DOUBLE),
    ("renews", Kind.TIMESTAMP),
)
SMALLEST = Fraction(1, 10**6)


class Session:
    """Statements of one role under one session account."""

    def __init__(self, service: Service, role: str, name: str) -> None:
        """``Service.session`` makes it."""
        self._service, self._name = service, name
        self._role: Role = service.policy.roles[role]
        self.settings = s.Settings()
        self._accounts()

    @property
    def role(self) -> str:
        """Whose budget is charged."""
        return self._role.name

    def execute(self, text: str, parameters: Parameters = (), *, intervals: bool = False) -> Reply:
        """Answer one statement: a query, SET, RESET, SHOW dpsql..., or EXPLAIN."""
        changed = s.changed(self.settings, text)
        if changed is not None:
            self.settings = changed
            return made("SET", (), ())
        name = s.shown(text)
        if name is not None:
            return self._show(name)
        inner = s.explained(text)
        if inner is not None:
            lines = self.explain(inner, parameters).splitlines()
            return made("EXPLAIN", (("plan", Kind.TEXT),), [[line] for line in lines])
        return self._query(text, parameters, intervals=intervals)

    def prepare(self, text: str, parameters: Parameters = ()) -> PricedPlan:
        """The priced plan of a query: no data is read, nothing is spent."""
        source = Source(text, self.settings.dialect, tuple(parameters))
        catalog = self._service.catalog(self.role)
        enumerator = self._service.tools.enumerator

        def priced(epsilon: Fraction) -> PricedPlan:
            request = replace(self._request(), epsilon=epsilon)
            return prepare(source, catalog, request, enumerator)

        wanted = self.settings.max_error
        limit = self._request().epsilon
        plan = priced(limit)
        return plan if wanted is None or not plan.parts else _cheapest(priced, limit, wanted)

    def explain(self, text: str, parameters: Parameters = ()) -> str:
        """Plan, generated SQL, sensitivity, mechanism, scale, expected error, cost, remainder."""
        priced = self.prepare(text, parameters)
        lines = [show(priced)]
        lines += [
            f"left in {r.account}: epsilon {float(r.left_epsilon):.6g}"
            f" of {float(r.epsilon):.6g}, delta {float(r.left_delta):.3g} of {float(r.delta):.3g}"
            for r in self.budget()
        ]
        return "\n".join(lines)

    def budget(self) -> tuple[Remaining, ...]:
        """What each account of this session has left."""
        return tuple(_remaining(b) for b in self._service.ledger.balances(self._accounts()))

    def _query(self, text: str, parameters: Parameters, *, intervals: bool) -> Reply:
        priced = self.prepare(text, parameters)
        check_cap(self._role.query, priced.cost)
        version = self._service.policy.version
        note = Note(version, self.role, self._name, text)
        payer = Payer(self._accounts(), note, version, self.settings.fresh)
        wanted = intervals or self.settings.intervals
        given = answer(priced, payer, self._service.tools, intervals=wanted)
        reply = Reply(
            "SELECT", given.release.columns, given.release.table, given.release.intervals,
            given.cost, given.recalled, self.budget,
        )  # fmt: skip
        return with_interval_columns(reply) if self.settings.intervals else reply

    def _request(self) -> Request:
        role, mine = self._role, self.settings
        return Request(
            epsilon=role.query.epsilon if mine.epsilon is None else mine.epsilon,
            delta=role.query.delta if mine.delta is None else mine.delta,
            mechanism=mine.mechanism,
            allowed=role.mechanisms,
            groups=role.max_groups_per_unit,
            sizes={u.name: u.group_size for u in self._service.policy.units.values()},
        )

    def _accounts(self) -> tuple[Account, ...]:
        now = self._service.clock()
        return accounts_for(self._service.policy, self.role, self._name, now=now)

    def _show(self, name: str) -> Reply:
        if name == "budget":
            rows = [_budget_row(r) for r in self.budget()]
            return made("SHOW", _BUDGET, rows)
        if name in s.SETTINGS:
            value = getattr(self.settings, name)
            text = "default" if value is None else str(value)
            return made("SHOW", ((f"dpsql.{name}", Kind.TEXT),), [[text]])
        raise Refused(
            Refusal(
                "DP401",
                f'there is no setting "dpsql.{name}"',
                "Only listed settings exist.",
                "Known: dpsql.budget, " + ", ".join(f"dpsql.{known}" for known in s.SETTINGS),
            )
        )


def _cheapest(
    priced: Callable[[Fraction], PricedPlan], limit: Fraction, wanted: Fraction
) -> PricedPlan:
    """The plan with the smallest epsilon whose every error is within what is wanted."""
    best = priced(limit)
    if _widest(best) > wanted:
        raise Refused(
            Refusal(
                "DP404",
                f"an error of {float(wanted):.6g} costs more than one query may",
                f"At the most that one query may cost, epsilon {float(limit):.6g}, the error is "
                f"{_widest(best):.6g}.",
                f"SET dpsql.max_error = {_widest(best):.6g}",
            )
        )
    low, high = min(SMALLEST, limit), limit
    while high > low * Fraction(101, 100):
        middle = (low + high) / 2 if high < 4 * low else low * 2
        middle = middle.limit_denominator(10**9)
        trial = priced(middle)
        if _widest(trial) <= wanted:
            best, high = trial, middle
        else:
            low = middle
    return best


def _widest(priced: PricedPlan) -> float:
    return max(item.half_width for part in priced.parts for item in part.noised)


def _remaining(balance: Balance) -> Remaining:
    (epsilon, delta), (spent, gone), (left, rest) = balance.total, balance.guarantee, balance.left
    account = balance.account
    return Remaining(account.title, epsilon, delta, spent, gone, left, rest, account.renews)


def _budget_row(r: Remaining) -> list[object]:
    numbers = (r.epsilon, r.delta, r.spent_epsilon, r.spent_delta, r.left_epsilon, r.left_delta)
    renews = None if r.renews is None else r.renews.replace(tzinfo=None)
    return [r.account, *(float(n) for n in numbers), renews]


def with_interval_columns(reply: Reply) -> Reply:
    """The reply with ``<name>_low`` and ``<name>_high`` behind each column that has an interval."""
    columns, arrays = [], []
    for i, column in enumerate(reply.columns):
        columns.append(column)
        arrays.append(reply.table.column(i))
        if i in reply.intervals:
            for word, end in zip(("low", "high"), reply.intervals[i], strict=True):
                columns.append(OutputColumn(f"{column.name}_{word}", Kind.DOUBLE))
                arrays.append(end)
    table = pa.Table.from_arrays(arrays, names=[f"o{i}" for i in range(len(columns))])
    return replace(reply, columns=tuple(columns), table=table)
