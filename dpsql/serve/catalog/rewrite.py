"""Rewrites catalog queries of clients into the SQL of the engine that holds the catalog.

The rewrite works on tokens and does not analyse the query. It maps schemas and types, and requires
each function to be listed. The result must be one SELECT over relations that exist here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from dpsql.serve.catalog.casts import pack_casts
from dpsql.serve.catalog.forms import plain_forms
from dpsql.serve.catalog.operand import last_name, take_operand
from dpsql.serve.catalog.privileges import cast_names
from dpsql.serve.catalog.types import CAST, PROCEDURES
from dpsql.serve.catalog.words import (
    BARE,
    BUILTIN,
    ELSEWHERE,
    INFORMATION,
    MISSING,
    NO_NAMES,
    REG,
    SCHEMAS,
    VECTORS,
)
from dpsql.serve.pgwire.errors import NO_FUNCTION, SYNTAX, WireError
from dpsql.serve.pgwire.parameters import items
from dpsql.serve.tokens import Token

_HIDDEN = frozenset({"tableoid", "xmin"})
_FROZEN = 2
"""The number that PostgreSQL gives as transaction to rows that are older than all others."""
_CONSTANT = re.compile(r"'(?:[^']|'')*+'|NULL")
_EXPANDED = re.compile(r"\( pgf__pg_expandarray \((.*)\) \)", re.DOTALL)
_NUMBERED = (
    "unnest(list_transform({}, lambda v, i: {{'x': v, 'n': CAST(i AS INTEGER)}}),"
    " recursive := true)"
)


class Rewrite:
    """The rewrite of one query. ``result`` returns the text for the engine."""

    def __init__(
        self, tokens: Sequence[Token], macros: frozenset[str], numbers: Mapping[str, int]
    ) -> None:
        """``macros`` are PostgreSQL's functions that the catalog defines itself.

        ``numbers`` has the oid of each relation, by the name with which its columns are qualified.
        """
        self._in, self._macros, self._at = list(tokens), macros, 0
        self._numbers = numbers
        self._counted = False
        self.out: list[str] = []

    def result(self) -> str:
        """Rewrite the whole query."""
        while self._at < len(self._in):
            self._one()
        return " ".join(self.out)

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._in[at].text.lower() if 0 <= at < len(self._in) else ""

    def _one(self) -> None:
        token = self._in[self._at]
        reader = _READERS.get(token.word)
        if reader is not None and reader(self):
            return
        if token.kind in ("word", "quoted"):
            self._identifier(token)
        elif token.kind in ("string", "escape", "dollar"):
            self._string(token)
        elif token.kind == "open" or token.text == ";":
            raise WireError(SYNTAX, "syntax error: a quote is not closed")
        else:
            self.out.append(token.text)
            self._at += 1

    def _identifier(self, token: Token) -> None:
        name, after_dot = token.name, self._peek(-1) == "." and not self._dropped_dot()
        following = self._peek(1)
        if name in SCHEMAS and following == "." and not after_dot:
            self._schema(name)
        elif following == "(" and not after_dot and token.word not in NO_NAMES:
            self._call(name)
        elif name in _HIDDEN and self._peek(-1) != "as" and self._own_relation() is not None:
            self._hidden(name)
        elif token.word in BARE and not after_dot and self._peek(-1) != "as" and following != ".":
            self.out.append(BARE[token.word])
            self._at += 1
        else:
            # A reserved word of the engine. PostgreSQL reserves it for AT TIME ZONE only.
            reserved = token.word == "at" and following != "time"
            self.out.append('"at"' if reserved else token.text)
            self._at += 1
            if name in VECTORS and self._peek() == "[":
                self._subscript()

    def _own_relation(self) -> int | None:
        """The oid of the relation whose hidden column is named at this place."""
        if self._peek(-1) == ".":
            return self._numbers.get(self._in[self._at - 2].name)
        return next(iter(self._numbers.values())) if len(self._numbers) == 1 else None

    def _hidden(self, name: str) -> None:
        """Write a hidden column, which every relation has: its oid, or the row's transaction."""
        number = self._own_relation() if name == "tableoid" else _FROZEN
        if self._peek(-1) == ".":
            del self.out[-2:]
        self.out.append(f"CAST({number} AS UINTEGER)")
        if self._peek(1) in ("", ",", "from"):
            self.out.append(f"AS {name}")
        self._at += 1

    def _dropped_dot(self) -> bool:
        return self._at >= 2 and self._in[self._at - 2].name in SCHEMAS

    def _schema(self, name: str) -> None:
        """Drop ``pg_catalog.``, and replace ``information_schema.`` before a relation."""
        self._at += 2
        called = self._peek(1) == "("
        if name == "information_schema" and not called and self._peek(-3) != "::":
            self.out += [INFORMATION, "."]

    def _call(self, name: str) -> None:
        """Write the name of a listed function, or an alias that a list of columns follows."""
        before = self._in[self._at - 1] if self._at else None
        words = before is not None and before.kind in ("word", "quoted")
        alias = before is not None and (
            before.text == ")" or before.word == "as" or (words and before.word not in NO_NAMES)
        )
        if alias or self._is_cte():
            self.out.append(self._in[self._at].text)
        elif name == "generate_series" and not self._before_is_from():
            self.out.append("pgx_series")
        elif f"pgt_{name}" in self._macros and self._before_is_from():
            self.out.append(f"pgt_{name}")
            self._counted = True
        elif f"pgf_{name}" in self._macros:
            self.out.append(f"pgf_{name}")
        elif name in BUILTIN or name in ELSEWHERE:
            self.out.append(ELSEWHERE.get(name, name))
        else:
            raise WireError(NO_FUNCTION, f"function {name} does not exist", position=self._place())
        self._at += 1

    def _before_is_from(self) -> bool:
        """Whether the function at this place is in FROM, and so must return rows."""
        at = self._at - 1
        if at > 0 and self._in[at].text == "." and self._in[at - 1].name in SCHEMAS:
            at -= 2
        if at >= 0 and self._in[at].word == ",":
            follows = self._closing(self._at + 1) + 1
            named = self._in[follows : follows + 1]
            words = named and named[0].kind == "word"
            return bool(words) and (named[0].word == "with" or named[0].word not in NO_NAMES)
        return at >= 0 and self._in[at].word in ("from", "join", "lateral")

    def _place(self) -> int:
        return self._in[self._at].start + 1

    def _is_cte(self) -> bool:
        if self._peek(-1) not in ("with", "recursive", ","):
            return False
        closing = self._closing(self._at + 1)
        behind = [t.word for t in self._in[closing + 1 : closing + 3]]
        return behind[:1] == ["as"] and behind[1:] in (["("], ["materialized"], ["not"])

    def _closing(self, opening: int) -> int:
        """The position of the bracket that closes the one at ``opening``."""
        depth = 0
        for at in range(opening, len(self._in)):
            depth += (self._in[at].text in ("(", "[")) - (self._in[at].text in (")", "]"))
            if depth == 0:
                return at
        raise WireError(SYNTAX, "syntax error at end of input")

    def _subscript(self) -> None:
        """Write the subscript of a vector, plus one: PostgreSQL's vectors count from zero."""
        closing = self._closing(self._at)
        inner = self._inside(self._at + 1, closing)
        self.out[-1] += f"[({inner}) + 1]"
        self._at = closing + 1

    def _inside(self, start: int, stop: int) -> str:
        return Rewrite(self._in[start:stop], self._macros, self._numbers).result()

    def _string(self, token: Token) -> None:
        value, before = token.value, self._peek(-2)
        self._at += 1
        in_any = self._peek(-2) == "(" and before in ("any", "all", "some")
        listed = value.startswith("{") and (in_any or self._casts_to_array())
        self.out.append(_list(value) if listed else quote_text(value))

    def _casts_to_array(self) -> bool:
        ahead = 0
        if self._peek() != "::":
            return False
        while self._peek(ahead) and self._peek(ahead) not in ("[", ",", ")"):
            ahead += 1
        return self._peek(ahead) == "[" and self._peek(ahead + 1) == "]"

    # -- syntax that the engine does not have

    def like(self) -> bool:
        """Add ESCAPE to LIKE: in PostgreSQL's patterns a backslash escapes without it."""
        end = self._pattern_end(self._at + 1)
        if end == self._at + 1 or (end < len(self._in) and self._in[end].word == "escape"):
            return False
        word = self._in[self._at].text
        self.out += [word, self._inside(self._at + 1, end), "ESCAPE '\\'"]
        self._at = end
        return True

    def _pattern_end(self, at: int) -> int:
        """The position after a pattern: constants, names, calls and casts, joined by ||."""
        wanted = True
        while at < len(self._in):
            token = self._in[at]
            if token.text == "(":
                at, wanted = self._closing(at), False
            elif token.text in ("||", "::", "."):
                wanted = True
            elif not wanted:
                break
            else:
                wanted = False
            at += 1
        return at

    def dot(self) -> bool:
        """Rewrite ``(composite).*``: one column for each of its fields."""
        if self._peek(1) != "*" or not self.out or self.out[-1] != ")":
            return False
        operand = take_operand(self.out)
        listed = _EXPANDED.fullmatch(operand)
        self.out.append(f"unnest({operand})" if listed is None else _NUMBERED.format(listed[1]))
        self._at += 2
        return True

    def operator(self) -> bool:
        """Rewrite ``OPERATOR(pg_catalog.~)`` to the operator itself."""
        if self._peek(1) != "(":
            return False
        closing = self._closing(self._at + 1)
        inner = [t.text for t in self._in[self._at + 2 : closing]]
        symbol = "".join(inner[2:] if inner[1:2] == ["."] else inner)
        self.out.append({"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE"}.get(symbol, symbol))
        self._at = closing + 1
        return True

    def ordinality(self) -> bool:
        """Drop ``WITH ORDINALITY`` after our own functions, which number their rows themselves."""
        if self._peek(1) != "ordinality" or not self._counted:
            return False
        self._counted = False
        self._at += 2
        return True

    def collate(self) -> bool:
        """Drop ``COLLATE pg_catalog."default"``: there is one order. Quote a name ``collate``."""
        if self._peek(-1) in ("as", "."):
            self.out.append('"collate"')
            self._at += 1
            return True
        self._at += 4 if self._peek(2) == "." else 2
        return True

    def cast_call(self) -> bool:
        """Rewrite ``CAST(x AS type)``."""
        if self._peek(1) != "(":
            return False
        opening = self._at + 1
        closing = self._closing(opening)
        depth, split = 0, 0
        for at in range(opening + 1, closing):
            depth += (self._in[at].text == "(") - (self._in[at].text == ")")
            if depth == 0 and self._in[at].word == "as":
                split = at
        if not split:
            raise WireError(SYNTAX, "syntax error in CAST", position=self._place())
        operand = self._in[opening + 1 : split]
        self.out.append("( " + self._inside(opening + 1, split) + " )")
        self._at = split + 1
        constant = len(operand) == 1 and operand[0].kind in ("string", "param")
        self._cast(closing, constant=constant)
        self._at = closing + 1
        return True

    def double_colon(self) -> bool:
        """Rewrite ``x::type``."""
        before = self._in[self._at - 1] if self._at else None
        constant = before is not None and before.kind in ("string", "param", "number")
        self._at += 1
        self._cast(len(self._in), constant=constant)
        return True

    def _cast(self, stop: int, *, constant: bool) -> None:
        """Read the type at this place, and apply it to the operand that was written last."""
        name, array = self._type(stop)
        operand = take_operand(self.out)
        if CAST.get(name) == "VARCHAR" and last_name(operand) in PROCEDURES and not array:
            self.out.append(f"pgx_regproc_name({operand})")
            return
        if name in REG:
            self.out.append(self._reg(name, operand, array=array, constant=constant, stop=stop))
            return
        engine = CAST.get(name)
        if engine is None:
            raise WireError("42704", f'type "{name}" does not exist')
        self.out.append(f"CAST({operand} AS {engine}{'[]' if array else ''})")

    def _reg(self, name: str, operand: str, *, array: bool, constant: bool, stop: int) -> str:
        """A cast to a reg type: an oid if it is compared, and a name if it is shown."""
        kind = "regproc" if name == "regprocedure" else name
        if array:
            return self._reg_list(kind, operand, stop)
        text = self._peek() == "::" and self._peek(1) in ("text", "varchar", "name")
        ends = self._at >= len(self._in) or self._peek() in ("as", ",", "from", ")")
        shown = text or (not constant and ends and stop == len(self._in))
        if constant and operand.startswith("'"):
            return f"pgx_must_be(pgx_{kind}{'_name' if shown else ''}({operand}), {operand}, '{MISSING[kind]}')"
        return f"pgx_{kind}_name({operand})" if shown else f"pgx_{kind}({operand})"

    def _reg_list(self, kind: str, operand: str, stop: int) -> str:
        """A cast to a list of a reg type: oids if they are compared, names if they become texts."""
        if operand.startswith("["):
            return "[" + ", ".join(f"pgx_{kind}({c})" for c in _CONSTANT.findall(operand)) + "]"
        if self._becomes_text(0) or self._becomes_text(self._behind_brackets(stop)):
            return f"pgx_names({operand}, '{kind}')"
        return f"CAST({operand} AS UINTEGER[])"

    def _becomes_text(self, ahead: int) -> bool:
        """Whether a cast to a list of texts or names begins at this distance."""
        after = [self._peek(ahead + n) for n in range(4)]
        return after in (["::", "text", "[", "]"], ["::", "name", "[", "]"])

    def _behind_brackets(self, stop: int) -> int:
        """The distance to the token after the call that encloses this place."""
        depth, ahead = 0, 0
        while self._at + ahead < stop and depth >= 0:
            depth += (self._peek(ahead) in ("(", "[")) - (self._peek(ahead) in (")", "]"))
            ahead += 1
        return ahead

    def _type(self, stop: int) -> tuple[str, bool]:
        if self._peek(1) == ".":
            self._at += 2
        name = self._in[self._at].name if self._at < stop else ""
        self._at += 1
        if name == "timestamp" and self._peek() == "with":
            name = "timestamptz"
        while self._at < stop and self._peek() in ("varying", "precision", "without", "with",
                                                   "time", "zone"):  # fmt: skip
            self._at += 1
        if self._peek() == "(" and self._at < stop:
            self._at = self._closing(self._at) + 1
        array = self._peek() == "[" and self._peek(1) == "]"
        self._at += 2 if array else 0
        return name, array


def quote_text(value: str) -> str:
    """The text as a constant of the engine."""
    return "'" + value.replace("'", "''") + "'"


def _list(value: str) -> str:
    return "[" + ", ".join("NULL" if v is None else quote_text(v) for v in items(value)) + "]"


_READERS: dict[str, Callable[[Rewrite], bool]] = {
    "operator": Rewrite.operator,
    "collate": Rewrite.collate,
    "with": Rewrite.ordinality,
    "cast": Rewrite.cast_call,
    "::": Rewrite.double_colon,
    ".": Rewrite.dot,
    "like": Rewrite.like,
    "ilike": Rewrite.like,
}


def rewrite_query(
    tokens: Sequence[Token], macros: frozenset[str], numbers: Mapping[str, int]
) -> str:
    """The query as text for the engine."""
    return Rewrite(plain_forms(pack_casts(cast_names(tokens))), macros, numbers).result()
