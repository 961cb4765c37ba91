"""The parts of README.md that are made from the code: python tests/repo/readme_tables.py rewrites them."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

from dpsql.catalog.aggregates import AGGREGATES, is_private
from dpsql.catalog.functions import FUNCTIONS
from dpsql.cli.arguments import COMMANDS, Command
from dpsql.cli.demo import EXAMPLES, POLICY
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.operation.events import EVENTS
from dpsql.diagnostics.operation.gauges import METRICS
from dpsql.ir.privacy_clause import OPTIONS, UNIT, UNIT_ABOUT
from dpsql.ledger.accounts import Account
from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import ATTO, NANO, Charge, down
from dpsql.ledger.metrics import METRICS as LEDGER_METRICS
from dpsql.ledger.query_cap import QueryCap, cap_of
from dpsql.ledger.shortage import more
from dpsql.policy import keys
from dpsql.policy.model import MECHANISMS, Allowance, QueryLimit, QueryShare, Role
from dpsql.policy.schema import markdown
from dpsql.price.divide import divide
from dpsql.price.request import Request
from dpsql.privacy.mechanisms import gaussian_for, laplace_for
from dpsql.service.remaining import affordable
from dpsql.service.settings import SETTINGS
from dpsql.sql.dialects.tables import DIALECTS

MOST_LABEL_VALUES = 6
ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_REGION = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_FAMILIES = {
    "DP1": "The shape of the SQL",
    "DP2": "Bounds and types",
    "DP3": "Units and joins",
    "DP4": "Budget and settings",
    "DP5": "Groups",
    "DP6": "Policy and role",
    "DP9": "Not the analyst's fault",
}


def rewritten(text: str) -> str:
    """The text with every region made anew."""
    return _REGION.sub(lambda m: f"{m[1]}{REGIONS[m[2]]()}\n{m[3]}", text)


def _codes() -> str:
    lines: list[str] = []
    for family, title in _FAMILIES.items():
        lines.append(f"### {family}xx: {title.lower()}\n")
        for code in CODES.values():
            if code.number.startswith(family):
                about = code.about[0].upper() + code.about[1:]
                lines.append(f"#### {code.number}\n\n{about}. SQLSTATE `{code.sqlstate}`.\n")
    return "\n".join(lines).rstrip()


def _settings() -> str:
    parts = [f"#### dpsql.{s.name}\n\n{_sentence(s.about)}" for s in SETTINGS.values()]
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    return _quoted(f"{text[0].upper()}{text[1:]}.")


def _quoted(text: str) -> str:
    return re.sub(r"<name>_\w+", r"`\g<0>`", text)


def _policy_keys() -> str:
    head, rule, *rows = markdown().splitlines()
    parts = []
    for key in keys.POLICY.keys:
        mine = [r for r in rows if re.match(rf"\| `{key.name}[`.]", r)]
        parts.append(f"#### {key.name}\n\n" + "\n".join([head, rule, *mine]))
    return "\n\n".join(parts)


def _functions() -> str:
    families: dict[str, list[str]] = {}
    for function in FUNCTIONS.values():
        family = function.shape.__module__.rpartition(".")[2]
        sql, _, note = function.about.partition(": ")
        families.setdefault(family, []).append(f"{sql} ({note})" if note else sql)
    lines = [
        f"- {family}: {', '.join(sorted(found))}" for family, found in sorted(families.items())
    ]
    return "\n".join(lines)


def _aggregates() -> str:
    answered = filter(is_private, AGGREGATES.values())
    return "\n".join(f"- {record.about}" for record in answered)


def _commands() -> str:
    return "\n\n".join(_command(command) for command in COMMANDS)


def _command(command: Command) -> str:
    parser = argparse.ArgumentParser(add_help=False)
    command.arguments(parser)
    words, notes = [f"dpsql {command.name}"], []
    for action in parser._actions:
        shown = _shown(action)
        words.append(shown if action.required else f"[{shown}]")
        if action.help:
            notes.append(f"- `{shown}`: {_quoted(action.help)}")
    usage = (
        f"#### dpsql {command.name}\n\n{_sentence(command.about)}\n\n```\n{' '.join(words)}\n```"
    )
    return "\n\n".join([usage, "\n".join(notes)] if notes else [usage])


def _shown(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest.upper())
    if action.choices is not None:
        name = "|".join(action.choices)
    if not action.option_strings:
        return f"{name}.." if action.nargs == "+" else name
    flag = action.option_strings[-1]
    return flag if action.nargs == 0 else f"{flag} {name}"


_FOLDS = {
    "lower": "unquoted names are in small letters",
    "upper": "unquoted names are in capitals",
    "keep": "names are as they are written",
}


def _dialects() -> str:
    lines = []
    for dialect in DIALECTS.values():
        lines.append(f"#### {dialect.name}\n\n{dialect.title}; {_FOLDS[dialect.fold]}.\n")
        lines += [f"- {line}" for line in sorted({c.about for c in dialect.changes.values()})]
        lines.append("")
    return "\n".join(lines).replace("\n\n\n", "\n\n").strip()


def _options() -> str:
    lines = [f"- `{name}`: {o.about} ({o.takes})" for name, o in OPTIONS.items()]
    return "\n".join([*lines, f"- `{UNIT}`: {UNIT_ABOUT}"])


def _examples() -> str:
    return "```sql\n" + ";\n\n".join(EXAMPLES) + ";\n```"


_CORPORA = {
    "tpch": "TPC-H, a customer protected",
    "clickbench": "ClickBench, a visitor protected",
    "bi": "shapes of Superset, Metabase, Tableau, Power BI, Grafana",
}


_SESSION = Allowance(Fraction(10), Fraction(1, 10**6), "zcdp")
_QUERIES: dict[str, QueryLimit | QueryShare] = {
    "{epsilon: 0.5}": QueryLimit(Fraction(1, 2), Fraction(1, 10**8)),
    "{share: 5%}": QueryShare(Fraction(5, 100), Fraction(5, 10**8)),
    "{share: 1%}": QueryShare(Fraction(1, 100), Fraction(1, 10**8)),
}


def _prices() -> str:
    lines = [
        "| `query` | noise | epsilon | delta | rho | in a session | 1 count within | each of 4 within |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    account = Account(
        "readme",
        "session",
        "",
        "",
        down(_SESSION.epsilon, NANO),
        down(_SESSION.delta, ATTO),
        zcdp=True,
    )
    for written, query in _QUERIES.items():
        cap = cap_of(Role("analyst", _SESSION, _SESSION, query))
        widths = {count: _widths(cap, count) for count in (1, 4)}
        for noise, cost in cap.costs(MECHANISMS):
            number = affordable(Balance(account, Charge()), Charge.of(cost))
            shown = " | ".join(more(n) if n else "0" for n in (cost.epsilon, cost.delta, cost.rho))
            within = " | ".join(str(widths[count][noise]) for count in (1, 4))
            lines.append(f"| `{written}` | {noise} | {shown} | {number:,} | {within} |")
    return "\n".join(lines)


def _widths(cap: QueryCap, statistics: int) -> dict[str, int]:
    """How far counts of people err, of which one question asks so many."""
    request = Request(cap.epsilon, cap.delta, rho=cap.rho)
    laplace, gaussian = divide(request, statistics, 0)
    assert gaussian.rho is not None
    return {
        "Laplace": laplace_for(1, laplace.epsilon).half_width(),
        "Gaussian": gaussian_for(1, gaussian.rho).half_width(),
    }


def _coverage() -> str:
    lines = ["| queries | asked | answered, equal to plain SQL | refused |", "|---|--:|--:|---|"]
    recorded = (ROOT / "fixtures" / "coverage" / "outcomes.txt").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in recorded.splitlines()]
    for name, title in _CORPORA.items():
        outcomes = Counter(outcome for corpus, _, outcome in rows if corpus == name)
        equal, refused = outcomes.pop("equal", 0), []
        for outcome, count in sorted(outcomes.items()):
            code = CODES[outcome.removeprefix("refused ")]
            refused.append(f"{count}: {code.about} ({code.number})")
        asked = equal + sum(outcomes.values())
        lines.append(f"| {title} | {asked} | {equal} | {'; '.join(refused)} |")
    return "\n".join(lines)


def _events() -> str:
    lines = ["| event | when | fields |", "|---|---|---|"]
    for name, kind in EVENTS.items():
        told = ", ".join(f"`{field.name}`" for field in fields(kind))
        about = " ".join((kind.__doc__ or "").split()).replace("``", "`")
        lines.append(f"| `{name}` | {about} | {told} |")
    return "\n".join(lines)


def _metrics() -> str:
    lines = ["| metric | kind | what | labels |", "|---|---|---|---|"]
    for metric in (*LEDGER_METRICS.values(), *METRICS.values()):
        labels = ", ".join(_label(name, values) for name, values in metric.labels.items())
        lines.append(f"| `{metric.name}` | {metric.kind} | {metric.about} | {labels} |")
    return "\n".join(lines)


def _label(name: str, values: Sequence[str]) -> str:
    """A label with its values, where they are listed and few enough to read."""
    if not values or len(values) > MOST_LABEL_VALUES:
        return f"`{name}`"
    return f"`{name}`: {', '.join(values)}"


REGIONS: dict[str, Callable[[], str]] = {
    "aggregates": _aggregates,
    "codes": _codes,
    "commands": _commands,
    "coverage": _coverage,
    "prices": _prices,
    "dialects": _dialects,
    "events": _events,
    "examples": _examples,
    "functions": _functions,
    "metrics": _metrics,
    "options": _options,
    "policy": lambda: f"```yaml\n{POLICY}```",
    "policy_keys": _policy_keys,
    "settings": _settings,
}

if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
