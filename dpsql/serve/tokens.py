"""Splits SQL text into tokens by PostgreSQL's lexical rules.

The tokens are used to split scripts, to read session commands, and to see which names a statement
uses. Only ``dpsql.sql`` decides the meaning of a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use

_TOKEN = re.compile(
    r"""
      (?P<space>  \s+ | --[^\n]* )
    | (?P<comment> /\* )
    | (?P<escape> [eE]'(?:[^'\\]|''|\\.)*' )
    | (?P<string> (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*' )
    | (?P<param>  \$\d+ )
    | (?P<dollar> \$(?:[^\W\d]\w*)?\$ )
    | (?P<quoted> "(?:[^"]|"")*" )
    | (?P<number> (?:\d+(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)? )
    | (?P<word>   [^\W\d][\w$]* )
    | (?P<op>     :: | <= | >= | <> | != | !~\* | !~ | ~\* | \|\| | => | := | ->> | -> | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A piece of SQL text: its kind, the text as written, and where it starts and ends."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """An unquoted word in lower case, or the operator; empty for everything else."""
        return self.text.lower() if self.kind in ("word", "op") else ""

    @property
    def name(self) -> str:
        """The name that an identifier stands for: folded to lower case unless it is quoted."""
        if self.kind == "quoted":
            return self.text[1:-1].replace('""', '"')
        return self.text.lower()

    @property
    def value(self) -> str:
        """The text that a text constant stands for."""
        if self.kind == "escape":
            return _unescaped(self.text[2:-1])
        if self.kind == "dollar":
            width = self.text.index("$", 1) + 1
            return self.text[width:-width]
        if self.kind == "string":
            return self.text[self.text.index("'") + 1 : -1].replace("''", "'")
        return self.name


def tokens(text: str) -> list[Token]:
    """The tokens of a text, without white space and comments.

    A quote or comment that never closes is one token of kind "open".

    >>> [t.text for t in tokens("SELECT 'a;b' -- note")]
    ['SELECT', "'a;b'"]
    """
    return list(_scan(text))


TOKEN = 200
"""Bytes of a token in memory, apart from the text that it copies.

Each character may be a token, so this bounds the size of the tokens of any text.
"""
_KNOWN = Cache[str, tuple[Token, ...]](
    Use.CACHED_STATEMENTS, 2_000, size=lambda text, found: 3 * len(text) + TOKEN * len(found)
)


def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text, cached for statements that are run repeatedly."""
    found = _KNOWN.get(text)
    if found is None:
        found = tuple(_scan(text))
        _KNOWN.put(text, found)
    return found


def _scan(text: str) -> Iterator[Token]:
    position, length = 0, len(text)
    while position < length:
        found = _TOKEN.match(text, position)
        assert found is not None  # the last alternative takes any character
        kind, start, end = str(found.lastgroup), position, found.end()
        if kind == "comment":
            position = _comment_end(text, start)
            if position < 0:
                yield Token("open", text[start:], start, length)
                return
            continue
        if kind == "dollar":
            end = text.find(found.group(), end)
            end = length if end < 0 else end + len(found.group())
            if not text.endswith(found.group(), start + len(found.group()), end):
                kind = "open"
        elif kind == "op" and found.group() in "'\"":
            kind, end = "open", length
        position = end
        if kind != "space":
            yield Token(kind, text[start:end], start, end)


def _comment_end(text: str, start: int) -> int:
    """The position after a comment, which may contain other comments; -1 if it never ends."""
    depth = 0
    for found in _COMMENT.finditer(text, start):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    return -1


_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{1,2}|.)|''", re.DOTALL)


def _unescaped(body: str) -> str:
    def one(found: re.Match[str]) -> str:
        what = found.group(1)
        if what is None:
            return "'"
        if len(what) > 1:
            return chr(int(what[1:], 16))
        return _ESCAPES.get(what, what)

    return _ESCAPE.sub(one, body)


class Piece(NamedTuple):
    """A statement of a script: its tokens, and the position at which it ends.

    If a statement is too long to be answered, only its beginning has tokens.
    """

    tokens: list[Token]
    end: int

    @property
    def cut(self) -> bool:
        """Whether the statement is too long, so that its tokens do not reach its end."""
        return self.end > self.tokens[-1].end


def statements(text: str, longest: int = 1 << 62) -> Iterator[Piece]:
    """The statements of a script, one after the other. Empty ones are left out.

    If a statement has more than ``longest`` characters, the rest of it has no tokens.

    >>> [[t.text for t in s.tokens] for s in statements("SELECT 1;; SHOW x;")]
    [['SELECT', '1'], ['SHOW', 'x']]
    """
    found: list[Token] = []
    end = 0
    for token in _scan(text):
        if token.kind == "op" and token.text == ";":
            if found:
                yield Piece(found, end)
            found = []
        else:
            end = token.end
            if not found or end - found[0].start <= longest:
                found.append(token)
    if found:
        yield Piece(found, end)
