"""The terms of a policy, which are the owner's promises, noted in the ledger when they change.

So the chain of records shows the limits under which every answer was given, when the data changed,
and which edits of the policy weakened a promise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from dpsql.diagnostics.refusal import PolicyError
from dpsql.ledger.accounts import Find, accounts_for, present_windows
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.filter import admits
from dpsql.ledger.query_cap import cap_of
from dpsql.ledger.shortage import more
from dpsql.ledger.store import DataNote, Ledger
from dpsql.policy.model import Allowance, Policy, Table

Terms = Mapping[str, Any]


def terms_of(policy: Policy) -> dict[str, Any]:
    """Everything in a policy on which the protection of a unit depends, as JSON."""
    tables = policy.tables
    limits = {"the data set": _limits(policy.dataset)}
    limits |= {f"table {n}": _limits(t.account) for n, t in tables.items() if t.account is not None}
    for name, role in policy.roles.items():
        limits[f"role {name}"] = _limits(role.allowance)
        limits[f"a session of role {name}"] = _limits(role.session)
        cap = cap_of(role)
        query = Allowance(cap.label, cap.delta, "basic")
        limits[f"a query of role {name}"] = _limits(query)
    return {
        "policy": policy.version,
        "data_version": policy.data_version,
        "time_zone": policy.time_zone,
        "limits": limits,
        "sees": {
            n: sorted(tables if r.tables is None else r.tables) for n, r in policy.roles.items()
        },
        "sizes": {name: unit.group_size for name, unit in policy.units.items()},
        "units": {name: table.unit for name, table in tables.items()},
        "keys": {name: _told_by(table) for name, table in tables.items() if not table.public},
        "columns": {
            f"{name}.{column.name}": column.identifier
            for name, table in tables.items()
            for column in table.columns.values()
            if not table.public
        },
    }


def _told_by(table: Table) -> str:
    """The columns and foreign keys that lead from a table's rows to their unit."""
    ways = [f"({', '.join(step.columns)}) to {step.references}" for step in table.path]
    key = f"({', '.join(table.unit_columns)})" if table.unit_columns else "each row"
    return ", ".join([*ways, key])


def find_loosened_terms(old: Terms, new: Terms) -> tuple[str, ...]:
    """The promises of ``old`` that ``new`` weakens, in words."""
    return (
        *_looser_limits(old["limits"], new["limits"]),
        *_other_zone(old, new),
        *_wider_roles(old["sees"], new["sees"]),
        *(
            f"unit {name}: {size} are protected together; before, {old['sizes'][name]} were"
            for name, size in new["sizes"].items()
            if size < old["sizes"].get(name, 0)
        ),
        *_barer_tables(old, new),
    )


def below_spent(policy: Policy, ledger: Ledger, now: datetime) -> tuple[str, ...]:
    """Messages about limits below what is spent already, which can no longer be kept.

    Charges that an edit of windows will carry into the present windows count as spent.
    """
    found: dict[str, str] = {}
    windows = _edited_windows(policy, ledger.terms(), now)
    carried = {} if windows is None else ledger.to_carry(windows)
    for role in policy.roles:
        for balance in ledger.balances(accounts_for(policy, role, tables=policy.tables, now=now)):
            spent = balance.spent + carried.get(balance.account.id, Charge())
            if not admits(balance.account, spent):
                epsilon = more(Fraction(spent.epsilon, NANO))
                delta = more(Fraction(spent.delta, ATTO))
                found[balance.account.id] = (
                    f"the limit of {balance.account.title} is below what is spent "
                    f"(epsilon {epsilon}, delta {delta}, added up); write at least the limit "
                    "that it had"
                )
    return tuple(found.values())


def adopt(
    policy: Policy, ledger: Ledger, now: datetime, data: DataNote | None = None
) -> tuple[str, ...]:
    """Note the terms of the policy if they are new; returns the promises that they weaken.

    If they begin other windows, the spending since these windows began is carried into them. Raises
    ``PolicyError``, and notes nothing, if a limit is below what is spent. ``data`` is data that is
    served under its version for the first time; it is noted too.
    """
    terms, known = terms_of(policy), ledger.terms()
    if known is not None and known == json.loads(json.dumps(terms)):
        if data is not None:
            ledger.note_terms(known, "data noted", data=data)
        return ()
    if problems := below_spent(policy, ledger, now):
        raise PolicyError(*(f"{policy.path.name}: {problem}" for problem in problems))
    weaker = () if known is None else find_loosened_terms(known, terms)
    windows = _edited_windows(policy, known, now)
    ledger.note_terms(terms, _about(known, terms), weaker, windows, data)
    return weaker


def _edited_windows(policy: Policy, known: Terms | None, now: datetime) -> Find | None:
    """The present windows, if any differs from those of the terms that were noted last."""
    if known is None or _windows(known) != _windows(terms_of(policy)):
        return present_windows(policy, now)
    return None


def _windows(terms: Terms) -> tuple[str | None, dict[str, str | None]]:
    """The time zone and the kinds of windows of terms; terms of older versions have no zone."""
    limits = terms.get("limits", {})
    return terms.get("time_zone"), {name: limit[3] for name, limit in limits.items()}


def _about(old: Terms | None, new: Terms) -> str:
    if old is None:
        return "first policy"
    rotated = old["data_version"] != new["data_version"]
    return "data version" if rotated and dict(old, data_version=0, policy=0) == dict(
        json.loads(json.dumps(new)), data_version=0, policy=0
    ) else "policy changed"  # fmt: skip


def _limits(allowance: Allowance) -> list[Any]:
    return [str(allowance.epsilon), str(allowance.delta), allowance.composition, allowance.per]


def _looser_limits(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() - new.keys()):
        if name.startswith("table "):
            yield f"{name}: it no longer has an account of its own"
    for name, (epsilon, delta, composition, per) in new.items():
        if name not in old:
            if name.startswith("role "):
                yield f"{name}: it is new"
            continue
        before = old[name]
        for word, now, then in (("epsilon", epsilon, before[0]), ("delta", delta, before[1])):
            if Fraction(now) > Fraction(then):
                yield f"{name}: {word} is {_short(now)}; it was {_short(then)}"
        if composition != before[2] and composition == "zcdp":
            yield f"{name}: composition is zcdp; it was basic"
        if per != before[3]:
            yield f"{name}: it renews {_every(per)}; before, {_every(before[3])}; {_COUNTED}"


def _every(window: str | None) -> str:
    return f"every {window}" if window else "not at all"


_COUNTED = "what was spent since the new window began counts in it"


def _other_zone(old: Terms, new: Terms) -> Iterator[str]:
    """A message if the time zone changed: windows then begin at other times, so they are new."""
    before = old.get("time_zone", new["time_zone"])  # terms of older versions have none
    if before != new["time_zone"]:
        yield f"windows begin at midnight of {new['time_zone']}; before, of {before}; {_COUNTED}"


def _wider_roles(
    old: Mapping[str, Sequence[str]], new: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for role, tables in new.items():
        added = sorted(set(tables) - set(old.get(role, tables)))
        if added:
            yield f"role {role}: it sees {', '.join(added)}"


def _barer_tables(old: Terms, new: Terms) -> Iterator[str]:
    for table, unit in new["units"].items():
        before = old["units"].get(table, unit)
        if before != unit:
            yield f"table {table}: it is {unit or 'public'}; it was {before or 'public'}"
    for table, key in new["keys"].items():
        before = old.get("keys", {}).get(table, key)  # terms of older versions have none
        if before != key:
            yield f"table {table}: its units are told apart by {key}; before, by {before}"
    for column, identifier in new["columns"].items():
        before = old["columns"].get(column)
        if before is None:
            yield f"column {column}: it is new"
        elif before and not identifier:
            yield f"column {column}: it is no longer an identifier"


def _short(number: str) -> str:
    return more(Fraction(number))
