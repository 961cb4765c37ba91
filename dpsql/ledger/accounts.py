"""The accounts that a query is charged to: their identities and limits, from the policy alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, NamedTuple, assert_never
from urllib.parse import quote
from zoneinfo import ZoneInfo

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ledger.charge import ATTO, NANO, down
from dpsql.policy.model import Allowance, Policy, Window

Holder = Literal["dataset", "table", "role", "session"]
LONGEST_SESSION_NAME = 63
_WINDOWS: dict[Window, str] = {
    "day": r"\d+-\d\d-\d\d",
    "week": r"\d+-W\d\d",
    "month": r"\d+-\d\d",
    "year": r"\d+",
}
"""The form of each kind of window in identities."""


@dataclass(frozen=True, slots=True)
class Account:
    """One budget. ``id`` names its holder and window; the limits are those of the current policy.

    Under ``id``, a ledger stores only what was spent. So an edit of the policy changes limits, but
    never what was spent. A new window is a new account that starts at zero, unless an edit of the
    policy begins it: see ``carry.py``.
    """

    id: str
    holder: Holder
    role: str
    session: str
    epsilon: int
    """Nano-epsilon, rounded down."""
    delta: int
    """Atto-delta, rounded down."""
    zcdp: bool
    """Whether charges may compose in rho; if not, epsilons and deltas add."""
    renews: datetime | None = None
    table: str = ""
    begins: datetime | None = None
    """When its window began; None if it has no window."""

    @property
    def title(self) -> str:
        """The name of the account for people."""
        match self.holder:
            case "dataset":
                return "the dataset"
            case "table":
                return f'table "{self.table}"'
            case "role":
                return f'role "{self.role}"'
            case "session":
                return f'session "{self.session}" of role "{self.role}"'
            case _:
                assert_never(self.holder)

    @property
    def dataset(self) -> str:
        """The prefix that all accounts of one ledger share."""
        return self.id.partition("/")[0]


def accounts_for(
    policy: Policy,
    role_name: str,
    session_name: str = "default",
    tables: Iterable[str] = (),
    *,
    now: datetime,
) -> tuple[Account, ...]:
    """The accounts that a query of this role and session debits: dataset, tables, role, session.

    Of the ``tables`` that the query reads, only those with an account of their own are debited.

    Names are percent-encoded in identities, so no choice of names gives two accounts one identity.
    """
    role = policy.roles.get(role_name)
    if role is None:
        raise Refused(_no_role(role_name))
    if not session_name.strip() or len(session_name) > LONGEST_SESSION_NAME:
        raise Refused(_no_session())
    zone = zone_of(policy)
    prefix, named = quote(policy.path.stem, safe=""), quote(role_name, safe="")
    session_key = f"session:{named}/{quote(session_name, safe='')}"

    def account(key: str, holder: Holder, allowance: Allowance, table: str = "") -> Account:
        local = now.astimezone(zone)
        window, renews = window_of(allowance.per, local)
        return Account(
            id=f"{prefix}/{key}" + (f"@{window}" if window else ""),
            holder=holder,
            role="" if holder in ("dataset", "table") else role_name,
            session=session_name if holder == "session" else "",
            epsilon=down(allowance.epsilon, NANO),
            delta=down(allowance.delta, ATTO),
            zcdp=allowance.composition == "zcdp" and allowance.delta > 0,
            renews=renews,
            table=table,
            begins=begin_of(allowance.per, local),
        )

    return (
        account("dataset", "dataset", policy.dataset),
        *(
            account(f"table:{quote(name, safe='')}", "table", allowance, name)
            for name in sorted(set(tables))
            if (allowance := policy.tables[name].account) is not None
        ),
        account(f"role:{named}", "role", role.allowance),
        account(session_key, "session", role.session),
    )


class Present(NamedTuple):
    """The identity of an account in its present window, and when that window began."""

    id: str
    begins: datetime | None


Find = Callable[[str], Present | None]
"""Maps the identity of an account without a window to its present window.

The result is None if the policy has no such account.
"""


def present_windows(policy: Policy, now: datetime) -> Find:
    """A function that finds the present windows of the policy's accounts."""
    prefix, local = quote(policy.path.stem, safe=""), now.astimezone(zone_of(policy))
    windows = {f"{prefix}/dataset": policy.dataset.per}
    for name, table in policy.tables.items():
        if table.account is not None:
            windows[f"{prefix}/table:{quote(name, safe='')}"] = table.account.per
    for name, role in policy.roles.items():
        windows[f"{prefix}/role:{quote(name, safe='')}"] = role.allowance.per
        windows[f"{prefix}/session:{quote(name, safe='')}"] = role.session.per

    def find(key: str) -> Present | None:
        is_session = key.startswith(f"{prefix}/session:")
        holder = key.rpartition("/")[0] if is_session else key
        if holder not in windows:
            return None
        window, _ = window_of(windows[holder], local)
        return Present(f"{key}@{window}" if window else key, begin_of(windows[holder], local))

    return find


def zone_of(policy: Policy) -> tzinfo:
    """The time zone in which the policy's windows begin."""
    return UTC if policy.time_zone == "UTC" else ZoneInfo(policy.time_zone)


def window_of(per: Window | None, now: datetime) -> tuple[str, datetime | None]:
    """The calendar window that contains ``now``, and the beginning of the next, in its time zone.

    >>> window_of("week", datetime(2027, 1, 1, tzinfo=UTC))
    ('2026-W53', datetime.datetime(2027, 1, 4, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if now.tzinfo is None:
        raise ValueError("a window needs a time with its time zone")
    day = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match per:
        case None:
            return "", None
        case "day":
            return f"{day:%Y-%m-%d}", day + timedelta(days=1)
        case "week":
            year, week, weekday = day.isocalendar()
            return f"{year}-W{week:02}", day + timedelta(days=8 - weekday)
        case "month":
            following = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
            return f"{day:%Y-%m}", following
        case "year":
            return f"{day:%Y}", day.replace(year=day.year + 1, month=1, day=1)
        case _:
            assert_never(per)


def begin_of(per: Window | None, now: datetime) -> datetime | None:
    """The beginning of the calendar window that contains ``now``, in its time zone.

    >>> begin_of("week", datetime(2027, 1, 1, 9, tzinfo=UTC))
    datetime.datetime(2026, 12, 28, 0, 0, tzinfo=datetime.timezone.utc)
    """
    day = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match per:
        case None:
            return None
        case "day":
            return day
        case "week":
            return day - timedelta(days=now.weekday())
        case "month":
            return day.replace(day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            assert_never(per)


def window_now(account: str, now: datetime) -> str:
    """The identity of the same account in the window that contains ``now``.

    >>> window_now("shop/role:a@2031-W01", datetime(2026, 11, 19, tzinfo=UTC))
    'shop/role:a@2026-W47'
    >>> window_now("shop/dataset", datetime(2026, 11, 19, tzinfo=UTC))
    'shop/dataset'
    """
    holder, _, window = account.partition("@")
    per = next((word for word, form in _WINDOWS.items() if re.fullmatch(form, window)), None)
    return f"{holder}@{window_of(per, now)[0]}" if per is not None else account


def _no_role(name: str) -> Refusal:
    return Refusal(
        "DP602",
        f'the policy has no role "{name}"',
        "Budgets belong to roles; without one there is nothing to charge.",
        "Connect with a role that the policy lists, or ask the owner to add this one.",
    )


def _no_session() -> Refusal:
    return Refusal(
        "DP401",
        f"a session name has 1 to {LONGEST_SESSION_NAME} characters",
        "The name is part of the identity of the account that the session is charged to.",
        "Choose a shorter name, or leave it out for the standing session.",
    )
