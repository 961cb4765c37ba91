"""The settings of an analyst, each with the function that reads it. None turns noise off."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.exact import parse_exact
from dpsql.ir.privacy_clause import LEAST_DELTA, SMALLEST
from dpsql.ledger.accounts import LONGEST_SESSION_NAME
from dpsql.plan.empty_groups import EmptyGroups
from dpsql.plan.noise_alone import Show
from dpsql.policy.model import Searching, TemporaryView
from dpsql.price.request import Mechanism
from dpsql.sql.dialects.tables import DIALECTS


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a session; None leaves the choice to the policy.

    ``bounding`` is for audits inside the process. No statement can set it, since it has no reader
    in ``SETTINGS``.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_error: Fraction | None = None
    mechanism: Mechanism = "auto"
    dialect: str = "postgres"
    intervals: bool = False
    fresh: bool = False
    session: str | None = None
    max_relative_error: Fraction | None = None
    expected_size: Fraction | None = None
    bounding: str | None = None
    search: Searching | None = None
    nonnegative: bool = False
    consistent: bool = False
    empty_groups: EmptyGroups = "auto"
    show: Show = "sensible"
    views: tuple[TemporaryView, ...] = ()
    """The temporary views of the session, which ``dpsql.service.temporary`` makes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its text is read, and what it is for."""

    name: str
    read: Callable[[str], Any]
    about: str


def _positive(text: str) -> Fraction:
    value = parse_exact(text)
    if not SMALLEST <= value <= 10**9:
        raise ValueError
    return value


def _probability(text: str) -> Fraction:
    value = parse_exact(text)
    if value and not LEAST_DELTA <= value < 1:
        raise ValueError
    return value


def _named(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_SESSION_NAME:
        raise ValueError
    return text


def _word(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError
        return text.lower()

    return read


def _switch(text: str) -> bool:
    return {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}[
        text.lower()
    ]


def _searching(text: str) -> str:
    if text.lower() == "auto":
        return "auto"
    return "on" if _switch(text) else "off"


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("epsilon", _positive, "what each query costs, up to the policy's limit"),
        Setting("delta", _probability, "the delta of each query, up to the policy's limit"),
        Setting(
            "max_error",
            _positive,
            "spend only as much as keeps the noise of every count and sum within this, 19 times in 20",
        ),
        Setting(
            "mechanism",
            _word("auto", "laplace", "geometric", "gaussian"),
            "the kind of noise; auto takes the one with the smallest predicted error",
        ),
        Setting("dialect", _word(*DIALECTS), "the dialect of SQL that statements are written in"),
        Setting(
            "intervals",
            _switch,
            "add columns <name>_low and <name>_high, the ends of 95 % intervals of the noise",
        ),
        Setting("fresh", _switch, "ask, and pay, for new noise instead of a stored answer"),
        Setting("session", _named, "the session account that is charged, by its name"),
        Setting(
            "max_relative_error",
            _positive,
            "like max_error, but as a share of expected_size: 0.02 is two per cent",
        ),
        Setting(
            "expected_size", _positive, "the expected size of answers, as you know or guess it"
        ),
        Setting(
            "search",
            _searching,
            "choose privately, for a part of the price, how much of a unit counts: auto, on or off",
        ),
        Setting("nonnegative", _switch, "show counts below zero as zero, and their intervals too"),
        Setting(
            "consistent",
            _switch,
            "make the totals of an answer equal to the sums of its groups, without more error",
        ),
        Setting(
            "empty_groups",
            _word("auto", "keep", "drop"),
            "public groups that may have no rows: keep them, or drop those with too few units",
        ),
        Setting(
            "show",
            _word("sensible", "always"),
            "averages and similar values that noise alone may decide: NULL, or always the number",
        ),
    )
}

_SET = re.compile(
    r"\s*set\s+(?:session\s+|local\s+)?dpsql\s*\.\s*(\w+)\s*(?:=|\s+to\s+)\s*(.+?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_RESET = re.compile(r"\s*reset\s+dpsql\s*\.\s*(\w+)\s*;?\s*", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(?:--[^\n]*+|/\*(.*?)\*/)", re.DOTALL)
_HINT = re.compile(r"\s*dpsql\s*\.", re.IGNORECASE)
HINTS = (
    "epsilon", "delta", "max_error", "max_relative_error", "expected_size", "mechanism", "search",
    "empty_groups",
)  # fmt: skip
"""The settings that a comment in front of a statement may set for that statement."""
_SHOW = re.compile(r"\s*show\s+dpsql\s*\.\s*(\w+)\s*;?\s*", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*explain\s+(.+)", re.IGNORECASE | re.DOTALL)


def apply_set(settings: Settings, text: str) -> Settings | None:
    """The settings after a SET or RESET statement; None when the text is neither."""
    reset = _RESET.fullmatch(text)
    if reset is not None:
        name = _known(reset.group(1))
        return replace(settings, **{name: getattr(Settings(), name)})
    found = _SET.fullmatch(text)
    if found is None:
        return None
    name, value = _known(found.group(1)), found.group(2)
    if value.lower() == "default":
        return replace(settings, **{name: getattr(Settings(), name)})
    unquoted = value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value
    try:
        return replace(settings, **{name: SETTINGS[name].read(unquoted)})
    except (ValueError, KeyError, ArithmeticError):
        raise Refused(_bad_value(name)) from None


def apply_hints(settings: Settings, text: str) -> Settings:
    """The settings for one statement: those of the session, changed by comments in front of it.

    A comment can set only the cost of the answer, its accuracy, and which groups take part.

    >>> apply_hints(Settings(), "/* dpsql.max_error = 50 */ SELECT 1").max_error
    Fraction(50, 1)
    """
    for part in _parts(text):
        name = part.partition("=")[0].partition(".")[2].strip().lower()
        if name in SETTINGS and name not in HINTS:
            raise Refused(_no_hint(name))
        made = apply_set(settings, f"SET {part}")
        if made is None:
            raise Refused(_no_hint(part.strip()))
        settings = made
    return settings


def _parts(text: str) -> list[str]:
    """The assignments in comments in front of a statement. All other comments are skipped."""
    parts, at = list[str](), 0
    while (found := _COMMENT.match(text, at)) is not None:
        if found[1] is not None and _HINT.match(found[1]):
            parts += found[1].split(",")
        at = found.end()
    return parts


def match_show(text: str) -> str | None:
    """The name after SHOW dpsql., or None."""
    found = _SHOW.fullmatch(text)
    return None if found is None else found.group(1).lower()


def match_explain(text: str) -> str | None:
    """The query after EXPLAIN, or None."""
    found = _EXPLAIN.fullmatch(text)
    return None if found is None else found.group(1)


def _known(name: str) -> str:
    if name.lower() not in SETTINGS:
        raise Refused(
            Refusal(
                "DP401",
                f'there is no setting "dpsql.{name.lower()}"',
                "Only listed settings exist.",
                "Known: " + ", ".join(f"dpsql.{known}" for known in SETTINGS),
            )
        )
    return name.lower()


def _no_hint(name: str) -> Refusal:
    known = ", ".join(f"dpsql.{hint}" for hint in HINTS)
    return Refusal(
        "DP401",
        f'a comment cannot set "{name[:60]}" for one statement',
        "It may say what one answer costs, how exact it is, or which groups take part.",
        f"/* dpsql.max_error = 50 */ SELECT ..; known: {known}",
    )


def _bad_value(name: str) -> Refusal:
    examples = {
        "epsilon": "0.1",
        "delta": "1e-8",
        "max_error": "50",
        "mechanism": "'auto'",
        "dialect": "'bigquery'",
        "intervals": "on",
        "fresh": "on",
        "session": "'monday'",
        "max_relative_error": "0.02",
        "expected_size": "5000",
        "search": "on",
        "nonnegative": "on",
        "consistent": "on",
        "empty_groups": "'keep'",
        "show": "'always'",
    }
    return Refusal(
        "DP401",
        f"this is not a value for dpsql.{name}",
        f"The setting is: {SETTINGS[name].about}.",
        f"SET dpsql.{name} = {examples[name]}",
    )
