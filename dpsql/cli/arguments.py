"""All commands of ``dpsql`` with their arguments. Nothing that loads slowly is imported here."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from dpsql.diagnostics.quote import PIECE, quote

DIALECTS = ("postgres", "duckdb", "bigquery", "snowflake")
"""The dialects of ``sql.dialects.tables``, which takes longer to load."""
FORMATS = ("table", "csv", "json", "parquet")


@dataclass(frozen=True, slots=True)
class Command:
    """One command; ``dpsql.cli.<name>`` runs it."""

    name: str
    about: str
    arguments: Callable[[argparse.ArgumentParser], None]


def _positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or not 1 <= int(text[:10]) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{quote(text)} is no whole number from 1 to 1,000,000")
    return int(text)


def _demo(p: argparse.ArgumentParser) -> None:
    p.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path("demo"))
    p.add_argument("--ask", action="store_true", help="also answer five example queries")


def _init(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "data", metavar="DATA", nargs="+", type=Path,
        help="one DuckDB file, or CSV, JSON and Parquet files and folders of them; CSV and JSON may be "
        "packed (.gz, .zst)",
    )  # fmt: skip
    p.add_argument("-o", "--output", type=Path, default=Path("policy.yaml"), metavar="FILE")
    p.add_argument(
        "--ask", action="store_true",
        help="ask at the terminal who is protected, how many rows count and what a question costs, and "
        "show the error of three questions",
    )  # fmt: skip
    p.add_argument(
        "--suggest-bounds", action="store_true",
        help="read ranges, small sets of values and numbers of rows from the data; they are private, and "
        "the file says so",
    )  # fmt: skip


def _check(p: argparse.ArgumentParser) -> None:
    p.add_argument("policy", type=Path, metavar="policy.yaml")
    p.add_argument(
        "--against-ledger", action="store_true",
        help="also say which promises are weaker than when the policy was served last",
    )  # fmt: skip


def _refresh(p: argparse.ArgumentParser) -> None:
    p.add_argument("policy", type=Path, metavar="policy.yaml")
    which = p.add_mutually_exclusive_group()
    which.add_argument(
        "--data-version", metavar="V",
        help="the new data_version (when left out, the next whole number, or today's date)",
    )  # fmt: skip
    which.add_argument(
        "--same-rows", action="store_true",
        help="state that the file was written anew with the same rows: data_version and stored "
        "answers stay",
    )  # fmt: skip


def _prepare(p: argparse.ArgumentParser) -> None:
    _policy(p)
    p.add_argument(
        "--table", metavar="T", action="append",
        help="a private table; may be given several times (all, when left out)",
    )  # fmt: skip
    p.add_argument("--remove", action="store_true", help="delete the copies instead")


def _query(p: argparse.ArgumentParser) -> None:
    _policy(p)
    _who(p)
    p.add_argument("--epsilon", metavar="E", help="spend this much instead of the policy's amount")
    _dialect(p)
    p.add_argument("--format", choices=FORMATS, default="table")
    p.add_argument(
        "--intervals", action="store_true",
        help="in CSV and Parquet, add <name>_low and <name>_high (tables and JSON have them)",
    )  # fmt: skip
    p.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the answer to this file"
    )
    _sql(p)


def _dialect(p: argparse.ArgumentParser) -> None:
    p.add_argument("--dialect", choices=DIALECTS, default="postgres", help="the dialect of the SQL")


def _explain(p: argparse.ArgumentParser) -> None:
    _policy(p)
    _who(p)
    _dialect(p)
    what = p.add_mutually_exclusive_group(required=True)
    _sql(what, optional=True)
    what.add_argument(
        "--batch", type=Path, metavar="FILE",
        help="price all statements of a file, one after the other, such as a whole dashboard",
    )  # fmt: skip


def _forecast(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "questions", metavar="QUESTIONS", nargs="?", type=Path,
        help="a file of statements; when left out, typical questions about each private table",
    )  # fmt: skip
    _policy(p)
    p.add_argument("--role", metavar="R", help="may be left out if the policy has only one role")
    _dialect(p)
    p.add_argument(
        "--look", action="store_true",
        help="look at the data: also show sizes, errors in percent and what limits cut; these are "
        "exact figures, and private",
    )  # fmt: skip
    p.add_argument(
        "--within", metavar="P", default="5%", help="the error that is wanted, in percent"
    )
    p.add_argument(
        "--size", type=_positive, default=1000, metavar="N",
        help="rows of a group, for numbers whose error depends on it, such as means",
    )  # fmt: skip
    p.add_argument("--epsilon", metavar="E,E", help="values of query.epsilon to try")
    p.add_argument("--share", metavar="P,P", help="values of query.share to try, in percent")
    p.add_argument("--rows", metavar="N,N", help="values of max_rows_per_unit to try, from 2")
    p.add_argument("--groups", metavar="N,N", help="values of max_groups_per_unit to try")
    p.add_argument(
        "--ranges", metavar="F,F",
        help="widths of ranges to try, as multiples of those in the policy, such as 0.5,1,2",
    )  # fmt: skip
    p.add_argument("--format", choices=FORMATS[:3], default="table")
    p.add_argument("--plot", type=Path, metavar="FILE", help="also draw the errors into this SVG")
    p.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this file")


def _budget(p: argparse.ArgumentParser) -> None:
    _policy(p)
    _who(p)
    p.add_argument(
        "--compare", action="store_true",
        help="also show what the same queries cost under each way of adding up (composition)",
    )  # fmt: skip


def _audit(p: argparse.ArgumentParser) -> None:
    _policy(p)
    p.add_argument(
        "--noted",
        metavar="HASH",
        help="a head hash that was noted earlier, and that must be in the chain",
    )
    p.add_argument(
        "--verify", action="store_true", help="show only the verdict, not the list of events"
    )
    p.add_argument("--format", choices=FORMATS[:3], default="table")
    p.add_argument(
        "-o", "--output", type=Path, metavar="FILE",
        help="write to this file; the export is itself recorded as an event",
    )  # fmt: skip


def _ledger(p: argparse.ArgumentParser) -> None:
    p.add_argument("action", choices=("backup", "restore", "repair"))
    p.add_argument(
        "file", metavar="FILE", nargs="?", type=Path,
        help="the backup to write or to restore; restore without it takes the ledger in place "
        "as a copy that was put back by other means",
    )  # fmt: skip
    _policy(p)
    p.add_argument(
        "--head", metavar="HASH",
        help="restore: the head that was noted last, elsewhere; if the backup ends with it, "
        "nothing is missing",
    )  # fmt: skip
    p.add_argument(
        "--nothing-was-asked", action="store_true",
        help="restore: state that nothing was asked after the backup; without it, accounts are "
        "closed",
    )  # fmt: skip
    p.add_argument("--today", metavar="DATE", help="repair: the date of today, to check the clock")


def _serve(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--policy", type=Path, required=True, metavar="P", action="append",
        help="may be given several times; a client then chooses the policy by the name of the "
        "database",
    )  # fmt: skip
    p.add_argument("--host", default="127.0.0.1", metavar="HOST", help="the address to listen on")
    p.add_argument("--port", type=int, default=5433, metavar="PORT")
    p.add_argument("--http-port", type=int, metavar="PORT", help="also answer HTTP on this port")
    p.add_argument("--tls-cert", type=Path, metavar="FILE", help="a certificate (chain) in PEM")
    p.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key")
    p.add_argument(
        "--log", metavar="FILE",
        help="the operator's log, or - for standard error (when left out, a file beside the "
        "first policy)",
    )  # fmt: skip
    p.add_argument(
        "--log-format", choices=("plain", "json"), default="plain",
        help="how lines of the log are written: plain for people, json for one JSON object per "
        "line",
    )  # fmt: skip
    p.add_argument(
        "--log-megabytes", type=_positive, default=10, metavar="N",
        help="how large a file of the log becomes before the next one is begun",
    )  # fmt: skip
    p.add_argument(
        "--log-files",
        type=_positive,
        default=10,
        metavar="N",
        help="how many files of the log are kept",
    )
    p.add_argument(
        "--log-comments", action="store_true",
        help="write comments in front of statements, where tools name who asks, into the operator's log",
    )  # fmt: skip
    p.add_argument(
        "--allow-plain", action="store_true",
        help="accept connections from other machines without TLS",
    )  # fmt: skip


def _selftest(p: argparse.ArgumentParser) -> None:
    _policy(p)
    p.add_argument(
        "--samples", type=int, default=100_000, metavar="N",
        help="how many answers to draw on each side of a question; more find smaller faults",
    )  # fmt: skip
    p.add_argument(
        "--seconds", type=float, default=math.inf, metavar="N",
        help="about how long it may take; the remaining questions are then asked less often",
    )  # fmt: skip
    p.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="how many processes"
    )


def _user(p: argparse.ArgumentParser) -> None:
    p.add_argument("action", choices=("add", "remove", "list"))
    p.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="the user; the password is asked for, or read from standard input",
    )
    p.add_argument(
        "--token", action="store_true",
        help="for HTTP: make a token instead of asking for a password, and print it once",
    )  # fmt: skip
    _policy(p)
    p.add_argument(
        "--role",
        metavar="R",
        help="the role whose budgets the user has; may be left out if there is only one",
    )


def _policy(p: argparse.ArgumentParser) -> None:
    p.add_argument("--policy", required=True, type=Path, metavar="P")


def _who(p: argparse.ArgumentParser) -> None:
    p.add_argument("--role", metavar="R", help="may be left out if the policy has only one role")
    p.add_argument(
        "--session", metavar="NAME", default="default", help="whose session account is charged"
    )


def _sql(p: argparse._ActionsContainer, *, optional: bool = False) -> None:
    about = "one statement; - reads it from standard input"
    p.add_argument("sql", metavar="SQL", nargs="?" if optional else None, help=about)


COMMANDS = (
    Command("demo", "write a small shop and its policy, to try dpsql on", _demo),
    Command("init", "draft a policy for CSV, JSON, Parquet or DuckDB files, or update it", _init),
    Command("check", "validate a policy and compare it with its source", _check),
    Command("forecast", "say how exact answers will be, here and under other settings", _forecast),
    Command("refresh", "take new data into use, under a new data_version", _refresh),
    Command("prepare", "copy private tables, so that queries read few rows of a unit", _prepare),
    Command("query", "answer one SQL statement, with noise and its intervals", _query),
    Command("explain", "show plan, noise and cost of a query; spends nothing", _explain),
    Command("budget", "show what each account has left", _budget),
    Command("audit", "list and verify what the ledger recorded", _audit),
    Command("ledger", "back up the ledger, restore it, or go on after a wrong clock", _ledger),
    Command("user", "say who may log in to the endpoint, and as which role", _user),
    Command("serve", "listen for PostgreSQL clients: drivers, notebooks, BI tools", _serve),
    Command("selftest", "audit the privacy of answers on made-up data; reads no row", _selftest),
)


class _Parser(argparse.ArgumentParser):
    """Reports errors without repeating all of a long argument."""

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and the error."""
        super().error(quote(message, 3 * PIECE))


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    root = _Parser(prog="dpsql", description="SQL with differential privacy")
    root.add_argument("--version", action="version", version=f"dpsql {version('dpsql')}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.arguments(
            commands.add_parser(command.name, help=command.about, description=command.about)
        )
    return root
