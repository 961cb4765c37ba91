"""Catalog queries as clients write them, in the words of the engine that holds the catalog.

A rewrite of tokens, not of meaning: schemas and types are mapped, every function must be listed,
and what is left must be one SELECT over relations that exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.serve.catalog.types import CAST
from dpsql.serve.pgwire.errors import NO_FUNCTION, SYNTAX, WireError
from dpsql.serve.pgwire.parameters import items
from dpsql.serve.tokens import Token

INFORMATION = "pgi"
"""Where the information schema is kept."""
_SCHEMAS = ("pg_catalog", "information_schema")
_VECTORS = frozenset(
    {"indkey", "indoption", "indclass", "indcollation", "proargtypes", "partattrs"}
)
_REG = frozenset({"regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"})
_BARE = {
    "current_user": "pgf_current_user()", "session_user": "pgf_current_user()",
    "user": "pgf_current_user()", "current_role": "pgf_current_user()",
    "current_schema": "pgf_current_schema()", "current_catalog": "pgf_current_database()",
    "current_date": "CAST(now() AS DATE)", "current_timestamp": "CAST(now() AS TIMESTAMP)",
    "localtimestamp": "CAST(now() AS TIMESTAMP)",
}  # fmt: skip
_SYNTAX = frozenset({
    "in", "values", "and", "or", "not", "exists", "any", "all", "some", "array", "over", "filter",
    "within", "using", "on", "as", "case", "when", "then", "else", "from", "join", "select",
    "where", "by", "distinct", "limit", "offset", "lateral", "union", "except", "intersect",
    "having", "between", "like", "ilike", "is", "row", "with", "recursive", "materialized", "only",
    "returning", "set", "end", "cast", "both", "leading", "trailing", "interval",
})  # fmt: skip
BUILTIN = frozenset({
    "abs", "array_agg", "array_append", "array_cat", "array_position", "ascii", "avg", "bool_and",
    "bool_or", "btrim", "ceil", "ceiling", "char_length", "character_length", "chr", "coalesce",
    "concat", "concat_ws", "count", "date_part", "date_trunc", "dense_rank", "every", "exp",
    "extract", "first_value", "floor", "generate_series", "generate_subscripts", "greatest",
    "initcap", "lag", "last_value", "lead", "least", "left", "length", "ln", "log", "lower",
    "lpad", "ltrim", "make_date", "max", "md5", "min", "mod", "nullif", "now", "octet_length",
    "overlay", "pi", "position", "power", "rank", "regexp_replace", "repeat", "replace", "reverse",
    "right", "round", "row_number", "rpad", "rtrim", "sign", "split_part", "sqrt", "starts_with",
    "string_agg", "strpos", "substr", "substring", "sum", "to_json", "translate", "trim", "trunc",
    "unnest", "upper",
})  # fmt: skip
"""The engine's own functions that catalog queries may call: total, and of their arguments only."""
_ELSEWHERE = {
    "clock_timestamp": "now", "statement_timestamp": "now", "transaction_timestamp": "now",
    "json_build_object": "json_object", "jsonb_build_object": "json_object",
}  # fmt: skip


class Rewrite:
    """One query on its way; ``result`` is what the engine is given."""

    def __init__(self, tokens: Sequence[Token], macros: frozenset[str]) -> None:
        """``macros`` are PostgreSQL's functions that the catalog defines itself."""
        self._in, self._macros, self._at = list(tokens), macros, 0
        self._counted = False
        self.out: list[str] = []

    def result(self) -> str:
        """The whole query."""
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
        if name in _SCHEMAS and following == "." and not after_dot:
            self._schema(name)
        elif following == "(" and not after_dot and token.word not in _SYNTAX:
            self._call(name)
        elif token.word in _BARE and not after_dot and self._peek(-1) != "as" and following != ".":
            self.out.append(_BARE[token.word])
            self._at += 1
        else:
            self.out.append(token.text)
            self._at += 1
            if name in _VECTORS and self._peek() == "[":
                self._subscript()

    def _dropped_dot(self) -> bool:
        return self._at >= 2 and self._in[self._at - 2].name in _SCHEMAS

    def _schema(self, name: str) -> None:
        """``pg_catalog.`` goes; ``information_schema.`` stays before a table, under another name."""
        self._at += 2
        called = self._peek(1) == "("
        if name == "information_schema" and not called and self._peek(-3) != "::":
            self.out += [INFORMATION, "."]

    def _call(self, name: str) -> None:
        """A function that is listed, or an alias with its columns."""
        before = self._in[self._at - 1] if self._at else None
        words = before is not None and before.kind in ("word", "quoted")
        alias = before is not None and (
            before.text == ")" or before.word == "as" or (words and before.word not in _SYNTAX)
        )
        if alias or self._is_cte():
            self.out.append(self._in[self._at].text)
        elif f"pgt_{name}" in self._macros and self._before_is_from():
            self.out.append(f"pgt_{name}")
            self._counted = True
        elif f"pgf_{name}" in self._macros:
            self.out.append(f"pgf_{name}")
        elif name in BUILTIN or name in _ELSEWHERE:
            self.out.append(_ELSEWHERE.get(name, name))
        else:
            raise WireError(NO_FUNCTION, f"function {name} does not exist", position=self._place())
        self._at += 1

    def _before_is_from(self) -> bool:
        """Whether rows are wanted of the function here."""
        at = self._at - 1
        if at > 0 and self._in[at].text == "." and self._in[at - 1].name in _SCHEMAS:
            at -= 2
        if at >= 0 and self._in[at].word == ",":
            follows = self._closing(self._at + 1) + 1
            named = self._in[follows : follows + 1]
            words = named and named[0].kind == "word"
            return bool(words) and (named[0].word == "with" or named[0].word not in _SYNTAX)
        return at >= 0 and self._in[at].word in ("from", "join", "lateral")

    def _place(self) -> int:
        return self._in[self._at].start + 1

    def _is_cte(self) -> bool:
        if self._peek(-1) not in ("with", "recursive", ","):
            return False
        closing = self._closing(self._at + 1)
        return closing + 1 < len(self._in) and self._in[closing + 1].word == "as"

    def _closing(self, opening: int) -> int:
        """Where the bracket at ``opening`` is closed."""
        depth = 0
        for at in range(opening, len(self._in)):
            depth += (self._in[at].text in ("(", "[")) - (self._in[at].text in (")", "]"))
            if depth == 0:
                return at
        raise WireError(SYNTAX, "syntax error at end of input")

    def _subscript(self) -> None:
        """Vectors count from zero."""
        closing = self._closing(self._at)
        inner = self._inside(self._at + 1, closing)
        self.out[-1] += f"[({inner}) + 1]"
        self._at = closing + 1

    def _inside(self, start: int, stop: int) -> str:
        return Rewrite(self._in[start:stop], self._macros).result()

    def _string(self, token: Token) -> None:
        value, before = token.value, self._peek(-2)
        self._at += 1
        in_any = self._peek(-2) == "(" and before in ("any", "all", "some")
        listed = value.startswith("{") and (in_any or self._casts_to_array())
        self.out.append(_list(value) if listed else quoted(value))

    def _casts_to_array(self) -> bool:
        ahead = 0
        if self._peek() != "::":
            return False
        while self._peek(ahead) and self._peek(ahead) not in ("[", ",", ")"):
            ahead += 1
        return self._peek(ahead) == "[" and self._peek(ahead + 1) == "]"

    # -- syntax that the engine does not have

    def operator(self) -> bool:
        """``OPERATOR(pg_catalog.~)``."""
        if self._peek(1) != "(":
            return False
        closing = self._closing(self._at + 1)
        inner = [t.text for t in self._in[self._at + 2 : closing]]
        symbol = "".join(inner[2:] if inner[1:2] == ["."] else inner)
        self.out.append({"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE"}.get(symbol, symbol))
        self._at = closing + 1
        return True

    def ordinality(self) -> bool:
        """``WITH ORDINALITY``: our own functions number their rows themselves."""
        if self._peek(1) != "ordinality" or not self._counted:
            return False
        self._counted = False
        self._at += 2
        return True

    def collate(self) -> bool:
        """``COLLATE pg_catalog."default"``: there is one order here."""
        self._at += 4 if self._peek(2) == "." else 2
        return True

    def cast_call(self) -> bool:
        """``CAST(x AS type)``."""
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
        """``x::type``."""
        before = self._in[self._at - 1] if self._at else None
        constant = before is not None and before.kind in ("string", "param", "number")
        self._at += 1
        self._cast(len(self._in), constant=constant)
        return True

    def _cast(self, stop: int, *, constant: bool) -> None:
        """The type at this place, applied to the operand that was written last."""
        name, array = self._type(stop)
        operand = self._operand()
        if name in _REG:
            self.out.append(self._reg(name, operand, array=array, constant=constant, stop=stop))
            return
        engine = CAST.get(name)
        if engine is None:
            raise WireError("42704", f'type "{name}" does not exist')
        self.out.append(f"CAST({operand} AS {engine}{'[]' if array else ''})")

    def _reg(self, name: str, operand: str, *, array: bool, constant: bool, stop: int) -> str:
        """An oid where it is compared, a name where it is shown."""
        kind = "regproc" if name == "regprocedure" else name
        if array:
            return f"list_transform({operand}, lambda z: pgx_{kind}(z))"
        text = self._peek() == "::" and self._peek(1) in ("text", "varchar", "name")
        ends = self._at >= len(self._in) or self._peek() in ("as", ",", "from", ")")
        shown = text or (not constant and ends and stop == len(self._in))
        return f"pgx_{kind}_name({operand})" if shown else f"pgx_{kind}({operand})"

    def _type(self, stop: int) -> tuple[str, bool]:
        if self._peek(1) == ".":
            self._at += 2
        name = self._in[self._at].name if self._at < stop else ""
        self._at += 1
        while self._at < stop and self._peek() in ("varying", "precision", "without", "with",
                                                   "time", "zone"):  # fmt: skip
            self._at += 1
        if self._peek() == "(" and self._at < stop:
            self._at = self._closing(self._at) + 1
        array = self._peek() == "[" and self._peek(1) == "]"
        self._at += 2 if array else 0
        return name, array

    def _operand(self) -> str:
        """Take back the primary expression that was written last."""
        if not self.out:
            raise WireError(SYNTAX, "syntax error at or near a cast")
        start = len(self.out) - 1
        while self.out[start] in (")", "]"):
            start = self._back_over(start)
            if start > 0 and _is_name(self.out[start - 1]) and self.out[start] in ("(", "["):
                start -= 1
                break
            if self.out[start] == "(" or start == 0:
                break
            start -= 1
        while start > 1 and self.out[start - 1] == ".":
            start -= 2
        taken = " ".join(self.out[start:])
        del self.out[start:]
        return taken

    def _back_over(self, at: int) -> int:
        depth = 0
        while at >= 0:
            depth += (self.out[at] in (")", "]")) - (self.out[at] in ("(", "["))
            if depth == 0:
                return at
            at -= 1
        raise WireError(SYNTAX, "syntax error at or near a cast")


def _is_name(text: str) -> bool:
    return (text[:1].isalpha() or text[:1] in '_"') and text.lower() not in _SYNTAX - {"array"}


def quoted(value: str) -> str:
    """A text constant of the engine."""
    return "'" + value.replace("'", "''") + "'"


def _list(value: str) -> str:
    return "[" + ", ".join("NULL" if v is None else quoted(v) for v in items(value)) + "]"


_READERS: dict[str, Callable[[Rewrite], bool]] = {
    "operator": Rewrite.operator,
    "collate": Rewrite.collate,
    "with": Rewrite.ordinality,
    "cast": Rewrite.cast_call,
    "::": Rewrite.double_colon,
}


def rewritten(tokens: Sequence[Token], macros: frozenset[str]) -> str:
    """The query as the engine is given it."""
    return Rewrite(tokens, macros).result()
