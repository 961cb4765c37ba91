"""Budgets of data set, roles, sessions and queries. None exceeds the budget that contains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from dpsql.policy.listing import Listing
from dpsql.policy.model import (
    MECHANISMS,
    Access,
    Allowance,
    Composition,
    QueryLimit,
    QueryShare,
    Role,
    Searching,
    Window,
)
from dpsql.policy.problems import Problems
from dpsql.policy.section import Section

LARGE_EPSILON = Fraction(100)
LARGE_DELTA = Fraction(1, 1000)
VERIFIER = "SCRAM-SHA-256$"
_UNKNOWN = Fraction(0)


@dataclass(frozen=True, slots=True)
class _Account:
    """An account as far as it is known: values that were reported as wrong are None."""

    label: str
    epsilon: Fraction | None
    delta: Fraction | None
    composition: Composition
    per: Window | None

    @property
    def allowance(self) -> Allowance:
        return Allowance(
            self.epsilon or _UNKNOWN, self.delta or _UNKNOWN, self.composition, self.per
        )


def accounts_of(root: Section, listing: Listing) -> tuple[Allowance, dict[str, Role]]:
    """The account of the data set, and the roles."""
    problems = listing.problems
    section = root.sub("accounts", "accounts").sub("dataset", "accounts.dataset")
    dataset = _account(section, None, problems)
    roles = {
        name: _role(name, part, dataset, listing) for name, part in root.sections("roles").items()
    }
    for name, part in root.sections("roles").items():
        _may_become(name, part, roles, problems)
    return dataset.allowance, roles


def table_accounts(root: Section, dataset: Allowance, listing: Listing) -> dict[str, Allowance]:
    """The accounts that tables have of their own."""
    queries = [
        part.sub("query", f"query of {part.label}") for part in root.sections("roles").values()
    ]
    above = _Account("accounts.dataset", dataset.epsilon, dataset.delta, dataset.composition, None)
    found = {}
    for name, table in root.sections("tables").items():
        if "account" not in table.given:
            continue
        section = table.sub("account", f"account of {table.label}")
        if table.get("public", bool):
            listing.problems.add(
                section.place, f"{section.label}, which is public and costs nothing; remove it"
            )
        account = _account(section, above, listing.problems)
        for query in queries:
            if "share" in query.given:
                _composes_in_rho(query, account, listing.problems)
        found[name] = account.allowance
    return found


def _role(name: str, section: Section, dataset: _Account, listing: Listing) -> Role:
    problems = listing.problems
    role = _account(section, dataset, problems)
    session = _account(section.sub("session", f"session of {section.label}"), role, problems)
    query = section.sub("query", f"query of {section.label}")
    _password(section, problems)
    return Role(
        name=name,
        allowance=role.allowance,
        session=session.allowance,
        query=_query(query, (dataset, role, session), problems),
        password=section.get("password", str),
        max_groups_per_unit=section.get("max_groups_per_unit", int) or 3,
        search=cast("Searching", section.get("search", str) or "auto"),
        mechanisms=_mechanisms(section, role, problems),
        tables=_tables(section, listing),
        access=Access(
            frozenset(section.names("may_become") or ()),
            section.get("connections", int),
            section.get("idle_seconds", int),
            section.get("statement_seconds", int),
            section.get("message_bytes", int),
        ),
        owner=section.get("owner", bool) or False,
    )


def _account(section: Section, above: _Account | None, problems: Problems) -> _Account:
    """The account of ``section``, inside the one ``above`` it."""
    epsilon = _amount(section, "epsilon", above, above.epsilon if above else None, problems)
    delta = _amount(section, "delta", above, above.delta if above else Fraction(0), problems)
    return _Account(
        label=section.label,
        epsilon=epsilon,
        delta=delta,
        composition=_composition(section, above, delta, problems),
        per=cast("Window | None", section.get("per", str)),
    )


def _query(
    section: Section, accounts: tuple[_Account, _Account, _Account], problems: Problems
) -> QueryLimit | QueryShare:
    """What one query may cost, in the accounts of the data set, the role and the session."""
    session = accounts[-1]
    share = _share(section, problems)
    if share is None:
        epsilon = _amount(section, "epsilon", session, _part(session.epsilon, 10), problems)
        delta = _amount(section, "delta", session, _part(session.delta, 100), problems)
        return QueryLimit(epsilon or _UNKNOWN, delta or _UNKNOWN)
    _, role, _ = accounts
    for account in accounts if role.composition == "zcdp" else accounts[:-1]:
        _composes_in_rho(section, account, problems)
    delta = _amount(section, "delta", session, _part(session.delta, 1 / share), problems)
    return QueryShare(share, delta or _UNKNOWN)


def _share(section: Section, problems: Problems) -> Fraction | None:
    """The share of rho that a query costs; None if it costs an epsilon."""
    text = section.get("share", str)
    if text is None:
        return None
    if "epsilon" in section.given:
        problems.add(
            section.at("epsilon"),
            f"{section.label} has both an epsilon and a share, and each of them is a price; "
            "remove one of them",
        )
    return Fraction(text.rstrip(" %")) / 100


def _composes_in_rho(section: Section, account: _Account, problems: Problems) -> None:
    if account.composition == "basic":
        problems.add(
            section.at("share"),
            f"{section.label} is a share of rho, but {account.label} adds up epsilons; write "
            "`epsilon: ..` instead of `share`, or give that account `composition: zcdp` and a delta "
            "above 0",
        )


def _amount(
    section: Section,
    key: str,
    above: _Account | None,
    default: Fraction | None,
    problems: Problems,
) -> Fraction | None:
    """The epsilon or delta that ``section`` gives, else ``default``; None if it was reported."""
    if key in section.spoilt:
        return None
    given = section.get(key, Fraction)
    if given is None:
        return default
    limit = LARGE_EPSILON if key == "epsilon" else LARGE_DELTA
    if given >= limit:
        problems.warn(
            section.at(key),
            f"{key} of {section.label} is {write_amount(given)}: this protects hardly anyone",
        )
    most = getattr(above, key, None)
    if above is not None and most is not None and given > most:
        problems.add(
            section.at(key),
            f"{key} of {section.label} is {write_amount(given)}, more than the {write_amount(most)} of "
            f"{above.label}; write at most {write_amount(most)}",
        )
    return given


def _composition(
    section: Section, above: _Account | None, delta: Fraction | None, problems: Problems
) -> Composition:
    given = section.get("composition", str)
    if given == "zcdp" and delta == 0:
        problems.add(
            section.at("composition"),
            f"composition of {section.label} is zcdp, which needs a delta above 0; "
            "write basic, or a delta such as 1e-6",
        )
    if given is not None:
        return cast("Composition", given)
    if delta == 0:
        return "basic"
    return above.composition if above else "zcdp"


def _part(amount: Fraction | None, parts: Fraction | int) -> Fraction | None:
    return None if amount is None else amount / parts


def _password(section: Section, problems: Problems) -> None:
    password = section.get("password", str)
    if password is not None and not password.startswith(VERIFIER):
        problems.warn(
            section.at("password"),
            f"the password of {section.label} is plain text; outside trials write its "
            "SCRAM-SHA-256 verifier",
        )


def _mechanisms(section: Section, role: _Account, problems: Problems) -> tuple[str, ...]:
    given = section.names("mechanisms")
    if given == ("gaussian",) and role.delta == 0:
        problems.add(
            section.at("mechanisms"),
            f"{section.label} may use gaussian noise only, which needs a delta above 0; "
            "add laplace and geometric, or a delta such as 1e-6",
        )
    return tuple(name for name in MECHANISMS if given is None or name in given)


def _may_become(name: str, section: Section, roles: Mapping[str, Role], problems: Problems) -> None:
    for other in section.names("may_become") or ():
        if other not in roles or other == name:
            problems.add(
                section.at("may_become"),
                f'{section.label} cannot become "{other}"; write other roles of this policy',
            )


def _tables(section: Section, listing: Listing) -> frozenset[str] | None:
    names = section.names("tables")
    for name in names or ():
        if listing.views is not None and name not in listing.views:
            listing.has_table(name, section.at("tables"), section.label)
    return None if names is None else frozenset(names)


def write_amount(amount: Fraction) -> str:
    """An epsilon or delta as a person writes it.

    >>> write_amount(Fraction(1, 100000)), write_amount(Fraction(20))
    ('1e-5', '20')
    """
    return (
        str(amount.numerator)
        if amount.denominator == 1
        else f"{float(amount):g}".replace("e-0", "e-")
    )
