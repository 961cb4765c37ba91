"""Finds the tables that a statement names, from its tokens alone.

The result decides which part of dpsql answers the statement, and never what it answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dpsql.serve.tokens import Token

V = TypeVar("V")

CATALOG_SCHEMAS = ("pg_catalog", "information_schema")
_ENDS_FROM = frozenset({
    "where", "group", "having", "order", "limit", "offset", "fetch", "union", "intersect",
    "except", "window", "for", "select",
})  # fmt: skip
_SETS = ("union", "all", "distinct", "intersect", "except")
_QUERY_STARTS = frozenset({"select", "with", "values", "table", "from"})
_NOT_A_TABLE = frozenset({"lateral", "only", "select", "values", "with"})
_NOT_AN_ALIAS = _ENDS_FROM | {
    "as", "join", "left", "right", "inner", "outer", "full", "cross", "natural", "on", "using",
    "tablesample", "with",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    """A relation in a FROM clause: its schema (empty when none is written) and name.

    ``at`` is the first token of the name, and ``end`` the token after it. ``alias`` is the name
    with which columns of the relation are qualified.
    """

    schema: str
    name: str
    at: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    alias: str = field(default="", compare=False)


@dataclass(slots=True)
class _Level:
    """The state within one pair of brackets.

    ``reads`` says whether a FROM here begins a list of tables, ``in_from`` whether the scan is in
    such a list, and ``expects`` whether a table comes next.
    """

    reads: bool
    in_from: bool = False
    expects: bool = False


@dataclass(slots=True)
class _Scan:
    tokens: Sequence[Token]
    found: list[Named] = field(default_factory=list)
    ctes: dict[str, int] = field(default_factory=dict)
    """Names of WITH queries, and the first token at which each may be read."""
    levels: list[_Level] = field(default_factory=lambda: [_Level(reads=True)])
    opening: dict[int, int] = field(default_factory=dict)
    """The opening bracket of each closing bracket. All brackets are matched before the scan."""
    closing: dict[int, int] = field(default_factory=dict)
    recursive: bool = False

    def run(self) -> None:
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.word == "(":
                opened.append(at)
            elif token.word == ")" and opened:
                self.opening[at] = opened.pop()
                self.closing[self.opening[at]] = at
        at = 0
        while at < len(self.tokens):
            at = self._step(at)

    def _step(self, at: int) -> int:
        token, level = self.tokens[at], self.levels[-1]
        word = token.word
        if word == "(":
            self._opened(at)
        elif word == ")":
            if len(self.levels) > 1:
                self.levels.pop()
            self.levels[-1].expects = False
        elif level.expects and token.kind in ("word", "quoted") and word not in _NOT_A_TABLE:
            return self._named(at)
        elif word:
            self._word(word, at)
        return at + 1

    def _opened(self, at: int) -> None:
        level = self.levels[-1]
        following = self._word_at(at + 1)
        if level.expects:
            reads_on = following not in _QUERY_STARTS
            self.levels.append(_Level(reads=True, in_from=reads_on, expects=reads_on))
        else:
            called = at > 0 and self.tokens[at - 1].kind in ("word", "quoted")
            query = following in _QUERY_STARTS or not called
            self.levels.append(_Level(reads=query))

    def _word(self, word: str, at: int) -> None:
        level = self.levels[-1]
        if word == "table" and self._word_at(at - 1) in ("", "(", *_SETS):
            level.expects = True
        elif word in ("from", "join"):
            if level.reads and self._word_at(at - 1) != "distinct":
                level.in_from = level.expects = True
        elif word == "," and level.in_from:
            level.expects = True
        elif word in _ENDS_FROM:
            level.in_from = level.expects = False
            level.reads = level.reads or word == "select"
        elif word == "as" and self._word_at(at + 1) in ("(", "materialized", "not"):
            self._cte(at)

    def _named(self, at: int) -> int:
        parts, start = [self.tokens[at].name], at
        at += 1
        while self._word_at(at) == "." and at + 1 < len(self.tokens):
            parts.append(self.tokens[at + 1].name)
            at += 2
        # TABLE(f(..)) stands for the rows of the function in its brackets.
        self.levels[-1].expects = parts == ["table"] and self._word_at(at) == "("
        # A name before a bracket is a function, except one with a database: no function has that.
        if self._word_at(at) != "(" or len(parts) > 2:
            schema = parts[-2] if len(parts) > 1 else ""
            alias = self._alias(at) or parts[-1]
            self.found.append(Named(schema, parts[-1], start, at, alias))
        return at

    def _alias(self, at: int) -> str:
        """The alias after a table; empty if there is none."""
        at += self._word_at(at) == "as"
        token = self.tokens[at] if at < len(self.tokens) else None
        named = token is not None and token.kind in ("word", "quoted")
        return token.name if token and named and token.word not in _NOT_AN_ALIAS else ""

    def _cte(self, at: int) -> None:
        """Note a WITH query: ``name AS (`` or ``name (columns) AS (`` after WITH or a comma.

        Within its own query the name is that of another table, unless the WITH is recursive.
        """
        back = at - 1
        if self._word_at(back) == ")":
            back = self.opening.get(back, 0) - 1
        if back > 0 and self._word_at(back - 1) in ("with", "recursive", ","):
            self.recursive = self.recursive or self._word_at(back - 1) == "recursive"
            body = at + 1
            while self._word_at(body) in ("not", "materialized"):
                body += 1
            end = at if self.recursive else self.closing.get(body, at)
            name = self.tokens[back].name
            self.ctes[name] = min(end, self.ctes.get(name, end))

    def _word_at(self, at: int) -> str:
        return self.tokens[at].word if 0 <= at < len(self.tokens) else ""


def tables(tokens: Sequence[Token]) -> list[Named]:
    """All tables that a statement reads, without the names of its own WITH queries."""
    scan = _Scan(tokens)
    scan.run()
    return [n for n in scan.found if n.schema or n.at < scan.ctes.get(n.name, len(tokens))]


def in_database(text: str, found: Sequence[Token], database: str) -> str:
    """The statement with blanks in place of its own database's name before tables.

    >>> from dpsql.serve.tokens import tokens as read
    >>> in_database("SELECT 1 FROM shop.public.t", read("SELECT 1 FROM shop.public.t"), "shop")
    'SELECT 1 FROM      public.t'
    """
    return _blanked(text, [
        (found[named.at].start, found[named.at + 2].start)
        for named in tables(found)
        if named.end - named.at == _WITH_DATABASE and found[named.at].name == database
    ])  # fmt: skip


def in_byte_order(text: str, found: Sequence[Token]) -> str:
    """The statement with blanks in place of ``COLLATE "C"``, the order that all texts have here.

    >>> from dpsql.serve.tokens import tokens as read
    >>> in_byte_order('a < b COLLATE "C"', read('a < b COLLATE "C"')).strip()
    'a < b'
    """
    spans = list[tuple[int, int]]()
    for at, token in enumerate(found):
        if token.word == "collate":
            end = at + 3 if [t.text for t in found[at + 2 : at + 3]] == ["."] else at + 1
            if [t.name for t in found[end : end + 1]] in (["C"], ["POSIX"]):
                spans.append((token.start, found[end].end))
    return _blanked(text, spans)


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with blanks in these spans, which are in order and do not overlap."""
    pieces, taken = list[str](), 0
    for start, stop in spans:
        pieces += text[taken:start], " " * (stop - start)
        taken = stop
    return "".join([*pieces, text[taken:]])


_WITH_DATABASE = 5
"""The number of tokens in ``database.schema.table``."""


def wants_no_rows(tokens: Sequence[Token]) -> bool:
    """Whether a statement can only have an empty answer: by LIMIT 0, or by a WHERE that is false.

    A call may be an aggregate, and an aggregate over no rows returns a row. So with a false WHERE
    the answer is only empty if the select list has no call.

    >>> from dpsql.serve.tokens import tokens as read
    >>> [wants_no_rows(read(f"SELECT * FROM t LIMIT {n}")) for n in ("0", "10", "0 + 1", "0, 10")]
    [True, False, False, False]
    >>> [wants_no_rows(read(f"SELECT {s} FROM t WHERE 1 = 0")) for s in ("a", "count(*)")]
    [True, False]
    """
    outer = _outermost(tokens)
    words = [t.word for t in outer]
    last = len(words) - 1 - words[::-1].index("limit") if "limit" in words else len(words)
    if [t.text for t in outer[last + 1 : last + 2]] == ["0"]:
        return words[last + 2 : last + 3] in ([], ["offset"])
    if not reads_no_rows(tokens):
        return False
    start = words.index("select") + 1 if "select" in words else len(words)
    listed = itertools.takewhile(lambda w: w not in ("from", "where"), words[start:])
    return "(" not in listed


def reads_no_rows(tokens: Sequence[Token]) -> bool:
    """Whether a statement is one SELECT that ends in a WHERE that is false for every row."""
    words = [t.word for t in _outermost(tokens)]
    if "where" not in words or not _SET_OPERATORS.isdisjoint(words):
        return False
    depth, where = 0, 0
    for at, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        if depth == 0 and token.word == "where":
            where = at
    return "".join(t.text.lower() for t in tokens[where + 1 :]) in _NEVER


def _outermost(tokens: Sequence[Token]) -> list[Token]:
    """The tokens outside all brackets, and the outermost brackets themselves."""
    found, depth = [], 0
    for token in tokens:
        depth -= token.word == ")"
        if depth == 0:
            found.append(token)
        depth += token.word == "("
    return found


_SET_OPERATORS = frozenset({"union", "intersect", "except"})
_NEVER = frozenset(
    {"1=0", "0=1", "1<>1", "1!=1", "false", "(1=0)", "(0=1)", "(1<>1)", "1=2", "2<1"}
)

_TIMES = frozenset({
    "current_date", "current_timestamp", "current_time", "localtime", "localtimestamp", "now",
    "clock_timestamp", "statement_timestamp", "transaction_timestamp", "random",
    "gen_random_uuid", "timeofday", "pg_backend_pid", "pg_cancel_backend", "pg_terminate_backend",
    "pg_stat_activity", "txid_current", "nextval", "set_config", "current_setting",
    "pg_postmaster_start_time", "dpsql",
})  # fmt: skip


def is_constant(tokens: Sequence[Token]) -> bool:
    """Whether the text alone fixes the answer, at any time and for any session."""
    return not any(t.kind in ("word", "quoted") and t.name in _TIMES for t in tokens)


def with_limits(text: str, tokens: Sequence[Token], values: Sequence[V]) -> tuple[str, list[V]]:
    """The text with whole numbers for the parameters of LIMIT and OFFSET, which plans need.

    A cast after such a parameter has no effect and is removed. The other parameters are renumbered.
    All other text keeps its position.

    >>> from dpsql.serve.tokens import tokens as read
    >>> sql = "SELECT $2 LIMIT $1::int"
    >>> with_limits(sql, read(sql), [5, "x"])
    ('SELECT $1 LIMIT 5      ', ['x'])
    """
    numbers: dict[int, int | None] = {}
    for at, token in enumerate(tokens):
        if token.kind == "param":
            position = int(token.text[1:]) - 1
            if _limits(tokens, at) and _whole(values, position) is not None:
                numbers.setdefault(position, None)
            else:
                numbers[position] = position
    kept = sorted(p for p, number in numbers.items() if number is not None)
    order = {position: number for number, position in enumerate(kept, 1)}
    pieces, taken = list[str](), 0
    for at, token in enumerate(tokens):
        if token.kind == "param":
            position = int(token.text[1:]) - 1
            shown, end = f"${order[position]}" if position in order else "", token.end
            if _limits(tokens, at) and _whole(values, position) is not None:
                shown, end = _whole(values, position) or "", _cast_end(tokens, at)
            pieces += text[taken : token.start], shown.ljust(end - token.start)
            taken = end
    unused = [v for p, v in enumerate(values) if p not in numbers]
    return "".join([*pieces, text[taken:]]), [
        *(values[p] for p in kept if p < len(values)),
        *unused,
    ]


def _limits(tokens: Sequence[Token], at: int) -> bool:
    return at > 0 and tokens[at - 1].word in ("limit", "offset")


def _whole(values: Sequence[object], position: int) -> str | None:
    """The value as a number of rows, or NULL: no limit, or one that is not known yet."""
    value = values[position] if position < len(values) else None
    if value is None:
        return "NULL"
    shown = str(value)
    whole = shown.isascii() and shown.isdecimal() and len(shown) < 19
    return str(int(shown)) if whole else None


def _cast_end(tokens: Sequence[Token], at: int) -> int:
    cast = tokens[at + 1 : at + 3]
    if len(cast) == 2 and cast[0].text == "::" and cast[1].kind == "word":
        return cast[1].end
    return tokens[at].end
