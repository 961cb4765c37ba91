"""Reads the text of a script as commands. Each kind of statement has one small reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dpsql.memory.cache import memoize
from dpsql.memory.pool import Use
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.comments import query_with, setting_comments, with_comments
from dpsql.serve.pgwire.copy_options import read_copy
from dpsql.serve.pgwire.cursor import Cursor
from dpsql.serve.pgwire.cursors import read_fetch, read_move
from dpsql.serve.pgwire.errors import PRIVILEGE, UNSUPPORTED, WireError
from dpsql.serve.tokens import Piece, statements
from dpsql.sql.parse import LONGEST_TEXT

LONGEST_SCRIPT = 1_000_000
LONG = 4_000
"""Longer scripts are read in a thread of a lane: a thousand characters take about 2 ms."""
LONGEST_REMEMBERED = 20_000
MOST_STATEMENTS = 1_000
Statements = tuple[c.Statement | WireError, ...]


def read_script(text: str) -> Statements:
    """The statements of a script, in order. One that cannot be read is an error in its place."""
    if len(text) > LONGEST_SCRIPT:
        return (WireError("54000", f"a script has at most {LONGEST_SCRIPT} characters"),)
    return _remembered(text) if len(text) < LONGEST_REMEMBERED else _read(text)


def _read(text: str) -> Statements:
    """Read the statements one after the other, so that only one at a time has tokens in memory."""
    found: list[c.Statement | WireError] = []
    before = 0
    for piece in statements(text, LONGEST_TEXT):
        if len(found) == MOST_STATEMENTS:
            return (WireError("54000", f"a script has at most {MOST_STATEMENTS} statements"),)
        found.append(_statement(text, before, piece))
        before = piece.end
    return tuple(found)


_remembered = memoize(Use.CACHED_STATEMENTS, 4_096)(_read)


def _statement(text: str, before: int, piece: Piece) -> c.Statement | WireError:
    """Read one statement. ``before`` is the end of the statement before it."""
    start = piece.tokens[0].start
    comments = setting_comments(text[before:start])
    body = text[start : piece.end]
    try:
        found = with_comments(_command(body, start, piece), comments)
        shift = len(comments) if isinstance(found, c.Query) else 0
        return c.Statement(found, start - shift)
    except WireError as error:
        if error.position is None:
            return error
        return WireError(error.sqlstate, error.message, position=error.position + start)


def _command(text: str, start: int, piece: Piece) -> c.Command:
    """The command of one statement, which begins at ``start``."""
    word = piece.tokens[0].word
    reader = _READERS.get(word)
    if reader is None:
        if word in _WRITES:
            raise _refused(word)
        return c.Query(text, c.highest(piece.tokens))
    if piece.cut:
        raise WireError("54000", f"a statement has at most {LONGEST_TEXT} characters")
    moved = [t._replace(start=t.start - start, end=t.end - start) for t in piece.tokens]
    cursor = Cursor(text, moved)
    cursor.next()
    found = reader(cursor)
    cursor.end()
    return found


def _refused(word: str) -> WireError:
    return WireError(
        PRIVILEGE,
        f"{word.upper()} is not allowed: dpsql answers queries and changes nothing",
        "Tables, temporary ones too, are neither made nor changed through this endpoint.",
        "Send a SELECT. CREATE TEMP VIEW names a query for this session.",
    )


def _view(cursor: Cursor) -> c.Command:
    """Read CREATE TEMP VIEW and DROP VIEW. The service keeps the views of a session."""
    word = cursor.passed_word()
    if word == "create":
        if cursor.skip("or"):
            cursor.expect("replace")
        if not cursor.skip("temp", "temporary"):
            raise _refused(word)
    if not cursor.skip("view"):
        raise _refused(word)
    cursor.rest()
    return c.Own(cursor.text, returns_rows=False)


def query(cursor: Cursor) -> c.Query:
    """Read the rest of a statement as a query of its own."""
    comments, rest = setting_comments(cursor.gap), cursor.rest()
    if not rest:
        raise cursor.unexpected()
    start = rest[0].start
    text = cursor.text[start : rest[-1].end]
    if rest[0].word in _READERS and rest[0].word != "explain":
        raise cursor.unexpected(rest[0])
    return query_with(c.Query(text, c.highest(rest)), comments)


def _begin(cursor: Cursor) -> c.Command:
    cursor.rest()
    return c.Begin()


def _start(cursor: Cursor) -> c.Command:
    cursor.expect("transaction")
    cursor.rest()
    return c.Begin("START TRANSACTION")


def _commit(cursor: Cursor) -> c.Command:
    cursor.skip("work", "transaction")
    if cursor.skip("prepared"):
        raise WireError(UNSUPPORTED, "prepared transactions are not supported")
    return c.End(commit=True, chain=_chain(cursor))


def _chain(cursor: Cursor) -> bool:
    if not cursor.skip("and"):
        return False
    none = cursor.skip("no")
    cursor.expect("chain")
    return not none


def _rollback(cursor: Cursor) -> c.Command:
    cursor.skip("work", "transaction")
    if cursor.skip("to"):
        cursor.skip("savepoint")
        return c.RollbackTo(cursor.name())
    return c.End(commit=False, chain=_chain(cursor))


def _savepoint(cursor: Cursor) -> c.Command:
    return c.Savepoint(cursor.name())


def _release(cursor: Cursor) -> c.Command:
    cursor.skip("savepoint")
    return c.Release(cursor.name())


def _set(cursor: Cursor) -> c.Command:
    local = cursor.skip("local")
    if not local and cursor.skip("session"):
        if cursor.skip("characteristics"):
            return _characteristics(cursor)
        if cursor.skip("authorization"):
            return _become(cursor)
    if cursor.peek() in ("transaction", "constraints"):
        cursor.rest()
        return c.Nothing("SET")
    if cursor.skip("role"):
        return _become(cursor, local=local)
    if cursor.skip("time"):
        cursor.expect("zone")
        return c.Set("timezone", _values(cursor), local)
    if cursor.skip("names"):
        return c.Set("client_encoding", _values(cursor), local)
    name = cursor.dotted()
    if name.startswith("dpsql.") and name != "dpsql.notices":
        cursor.rest()
        return c.Own(cursor.text, returns_rows=False, sets=name.removeprefix("dpsql."), local=local)
    if not (cursor.skip("=") or cursor.skip("to")):
        raise cursor.unexpected()
    return c.Set(name, _values(cursor), local)


def _characteristics(cursor: Cursor) -> c.Command:
    """Read SET SESSION CHARACTERISTICS. The isolation level is kept, as clients read it back."""
    level = _LEVEL.search(" ".join(t.word for t in cursor.rest()))
    return c.Nothing("SET") if level is None else c.Set("default_transaction_isolation", level[1])


_LEVEL = re.compile(
    r"isolation level (serializable|repeatable read|read committed|read uncommitted)"
)


def _become(cursor: Cursor, *, local: bool = False) -> c.Command:
    """Read another role of the policy, or NONE or DEFAULT for the one that logged in."""
    token = cursor.next()
    own = token.word in ("none", "default")
    return c.Become(None if own else token.value, local=local)


def _values(cursor: Cursor) -> str | None:
    """Read the value of a setting: one word, text or number, or several with commas."""
    items = [t for t in cursor.rest() if t.text != ","]
    if not items:
        raise cursor.unexpected()
    if len(items) == 1 and items[0].word in ("default", "local"):
        return None
    joined = ""
    for token in items:
        text = token.value if token.kind != "word" else token.text
        glue = "" if not joined or joined == "-" else ", "
        joined += glue + text
    return joined


_LONG_NAMES = {
    ("transaction", "isolation", "level"): "transaction_isolation",
    ("time", "zone"): "timezone",
    ("session", "authorization"): "session_authorization",
}


def _describe(cursor: Cursor) -> c.Command:
    """Read ``DESCRIBE orders``, which the service answers."""
    cursor.skip("table")
    cursor.dotted()
    return c.Own(cursor.text, returns_rows=True)


def _show(cursor: Cursor) -> c.Command:
    if cursor.skip("tables"):
        return c.Own(cursor.text, returns_rows=True)
    if cursor.skip("columns"):
        if not cursor.skip("from", "in"):
            raise cursor.unexpected()
        return _describe(cursor)
    words = tuple(t.name for t in cursor.rest())
    name = _LONG_NAMES.get(words) or "".join(words)
    if not name:
        raise cursor.unexpected()
    if name.startswith("dpsql.") and name != "dpsql.notices":
        return c.Own(cursor.text, returns_rows=True)
    return c.Show(name)


def _reset(cursor: Cursor) -> c.Command:
    if cursor.skip("session"):
        cursor.expect("authorization")
        return c.Become(None, "RESET")
    if cursor.skip("role"):
        return c.Become(None, "RESET")
    if cursor.skip("time"):
        cursor.expect("zone")
        return c.Reset("timezone")
    if cursor.skip("all"):
        return c.Reset(None)
    name = cursor.dotted()
    if name.startswith("dpsql.") and name != "dpsql.notices":
        return c.Own(cursor.text, returns_rows=False, sets=name.removeprefix("dpsql."))
    return c.Reset(name)


def _discard(cursor: Cursor) -> c.Command:
    what = cursor.next().word
    if what not in ("all", "plans", "sequences", "temp", "temporary"):
        raise cursor.unexpected()
    return c.Discard(what)


def _declare(cursor: Cursor) -> c.Command:
    name, scroll, hold = cursor.name(), None, False
    while not cursor.skip("cursor"):
        if cursor.skip("no"):
            cursor.expect("scroll")
            scroll = False
        elif cursor.skip("scroll"):
            scroll = True
        elif not cursor.skip("binary", "insensitive", "asensitive"):
            raise cursor.unexpected()
    if cursor.skip("with"):
        cursor.expect("hold")
        hold = True
    elif cursor.skip("without"):
        cursor.expect("hold")
    cursor.expect("for")
    return c.Declare(name, query(cursor), hold, scroll)


def _close(cursor: Cursor) -> c.Command:
    return c.CloseCursor(None if cursor.skip("all") else cursor.name())


def _prepare(cursor: Cursor) -> c.Command:
    if cursor.peek() == "transaction":
        raise WireError(UNSUPPORTED, "prepared transactions are not supported")
    name = cursor.name()
    types: list[list[str]] = [[]] if cursor.skip("(") else []
    while types and not cursor.skip(")"):
        if cursor.skip(","):
            types.append([])
        else:
            types[-1].append(cursor.next().name)
    cursor.expect("as")
    known = tuple(_type(words) for words in types)
    return c.Prepare(name, known, query(cursor))


def _type(words: Sequence[str]) -> int:
    if words[-2:] == ["[", "]"]:
        return oids.ARRAYS.get(_type(words[:-2]), 0)
    return oids.NAMES.get(words[0], 0) if words else 0


def _execute(cursor: Cursor) -> c.Command:
    name = cursor.name()
    values: list[str | None] = []
    if cursor.skip("("):
        while True:
            values.append(cursor.constant())
            if cursor.skip(")"):
                break
            cursor.expect(",")
    return c.ExecutePrepared(name, tuple(values))


def _deallocate(cursor: Cursor) -> c.Command:
    cursor.skip("prepare")
    return c.Deallocate(None if cursor.skip("all") else cursor.name())


def _explain(cursor: Cursor) -> c.Command:
    first = cursor.peek_inside()
    query = cursor.peek() != "(" or first in ("select", "with", "values", "table")
    if first in ("analyze", "analyse", "verbose") or not query:
        raise WireError(
            UNSUPPORTED, "EXPLAIN takes no options here",
            "It runs nothing, and its lines are text.", "EXPLAIN SELECT ...",
        )  # fmt: skip
    cursor.rest()
    return c.Own(cursor.text, returns_rows=True)


def _nothing(tag: str) -> Callable[[Cursor], c.Command]:
    def reader(cursor: Cursor) -> c.Command:
        cursor.rest()
        return c.Nothing(tag)

    return reader


def _table(cursor: Cursor) -> c.Command:
    """Read ``TABLE x`` as ``SELECT * FROM x``."""
    rest = cursor.rest()
    text = "SELECT * FROM " + cursor.text[rest[0].start :] if rest else "TABLE"
    return c.Query(text)


def _copy(cursor: Cursor) -> c.Command:
    return read_copy(cursor, query)


_READERS: dict[str, Callable[[Cursor], c.Command]] = {
    "begin": _begin,
    "start": _start,
    "commit": _commit,
    "end": _commit,
    "rollback": _rollback,
    "abort": _rollback,
    "savepoint": _savepoint,
    "release": _release,
    "set": _set,
    "show": _show,
    "reset": _reset,
    "discard": _discard,
    "declare": _declare,
    "fetch": read_fetch,
    "move": read_move,
    "close": _close,
    "prepare": _prepare,
    "execute": _execute,
    "deallocate": _deallocate,
    "copy": _copy,
    "explain": _explain,
    "table": _table,
    "create": _view,
    "drop": _view,
    "describe": _describe,
    "desc": _describe,
    "listen": _nothing("LISTEN"),
    "unlisten": _nothing("UNLISTEN"),
}
_WRITES = frozenset({
    "alter", "analyse", "analyze", "call", "checkpoint", "cluster", "comment", "delete",
    "do", "grant", "import", "insert", "load", "lock", "merge", "notify", "reassign",
    "refresh", "reindex", "revoke", "security", "truncate", "update", "vacuum",
})  # fmt: skip
