"""``dpsql query``: answers one statement."""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace
from fractions import Fraction
from typing import TextIO

from dpsql.cli import answer, terminal
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.cli.formats import encode_reply
from dpsql.cli.opened import open_session, statement
from dpsql.diagnostics.quote import quote
from dpsql.service import Reply
from dpsql.service.settings import SETTINGS


def run(chosen: argparse.Namespace) -> int:
    """Answer one statement, to the screen or to a file, and print its cost."""
    if chosen.format == "parquet" and chosen.output is None and sys.stdout.isatty():
        raise Usage("Parquet cannot be shown on a screen; add -o FILE")
    sql, epsilon = statement(chosen.sql), _epsilon(chosen.epsilon)
    with open_session(chosen) as session:
        if epsilon is not None:
            session.settings = replace(session.settings, epsilon=epsilon)
        reply = session.execute(sql, intervals=True)
        _write(reply, chosen)
        if reply.tag == "SELECT":
            aside = chosen.format != "table" or chosen.output is not None
            for line in (*reply.notes, answer.footer(reply)):
                terminal.say(line, sys.stderr if aside else sys.stdout)
    return ANSWERED


def _epsilon(text: str | None) -> Fraction | None:
    try:
        return None if text is None else SETTINGS["epsilon"].read(text)
    except (ValueError, ArithmeticError):
        raise Usage(
            f"--epsilon takes a number above 0, such as 0.1, not {quote(text or '')!r}"
        ) from None


def _write(reply: Reply, chosen: argparse.Namespace) -> None:
    if chosen.format != "table":
        body = encode_reply(reply, chosen.format, intervals=chosen.intervals)
        if chosen.output is not None:
            chosen.output.write_bytes(body)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(body)
            sys.stdout.buffer.flush()
    elif chosen.output is not None:
        text = io.StringIO()
        _show(reply, text)
        chosen.output.write_text(text.getvalue(), encoding="utf-8")
    else:
        _show(reply, sys.stdout)


def _show(reply: Reply, file: TextIO) -> None:
    if reply.tag == "EXPLAIN":
        file.writelines(f"{line}\n" for line in reply.table.column(0).to_pylist())
    elif reply.columns:
        terminal.show(answer.answer_table(reply), file)
