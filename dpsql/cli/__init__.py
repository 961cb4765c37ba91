"""The command line: it turns answers, refusals and failures into text and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dpsql.cli.arguments import parser
from dpsql.cli.exits import ANSWERED, BUDGET, FAILED, REFUSED, USAGE, Usage
from dpsql.diagnostics.quote import line, place
from dpsql.diagnostics.refusal import Error, OutOfBudget, Refused

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (Usage, USAGE),
    (OutOfBudget, BUDGET),
    (Refused, REFUSED),
    (Error, FAILED),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Tracebacks are not shown."""
    chosen = parser().parse_args(arguments)
    try:
        code: int = import_module(f"dpsql.cli.{chosen.command}").run(chosen)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of the output closed it, which is no failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ANSWERED
    except KeyboardInterrupt:
        return _said("interrupted; what was charged stays charged", FAILED)
    except OSError as error:
        said = f"{place(error.filename or 'output')}: {error.strerror or error}"
        return _said(line(said), FAILED)
    except Exception as error:
        for kind, code in _CODES:
            if isinstance(error, kind):
                return _said(str(error), code)
        if os.environ.get("DPSQL_TRACEBACK"):  # for developers of dpsql
            raise
        return _said(f"DP903: a defect in dpsql ({type(error).__name__}): please report it", FAILED)


def _said(text: str, code: int) -> int:
    sys.stderr.write(text + "\n")
    return code
