"""Replaces forms of SQL that the catalog's engine does not have by forms that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.serve.tokens import Token


def plain_forms(tokens: Sequence[Token]) -> list[Token]:
    """The statement without these forms, and with the same meaning.

    >>> from dpsql.serve.tokens import tokens as read
    >>> def shown(sql): return " ".join(t.text for t in plain_forms(read(sql)))
    >>> shown("SELECT 1 WHERE EXISTS (SELECT FROM a) AND b = ANY(ARRAY(SELECT c FROM d))")
    'SELECT 1 WHERE EXISTS ( SELECT 1 FROM a ) AND b = ANY ( SELECT c FROM d )'
    >>> shown("SELECT x FROM a, unnest(b, c) AS u(x, y)")
    'SELECT x FROM a , LATERAL ( SELECT unnest ( b ) , unnest ( c ) ) AS u ( x , y )'
    """
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        reader = _READERS.get(tokens[at].name)
        form, end = reader(tokens, at) if reader is not None else ([], 0)
        if not end:
            form, end = [tokens[at]], at + 1
        if form[0].word == "lateral" and found and found[-1].word == "lateral":
            form = form[1:]
        found += form
        at = end
    return found


Form = tuple[list[Token], int]
"""The replacement of a form, and the position after the form; 0 if there is no form."""


def _without_columns(tokens: Sequence[Token], at: int) -> Form:
    """``EXISTS (SELECT FROM a)``: a select list is added."""
    wanted = _words(tokens, at - 2, 2) == ["exists", "("] and _words(tokens, at + 1, 1) == ["from"]
    return (
        ([tokens[at], tokens[at]._replace(kind="number", text="1")], at + 1) if wanted else ([], 0)
    )


def _any_of_rows(tokens: Sequence[Token], at: int) -> Form:
    """``a = ANY(ARRAY(SELECT ..))``, which becomes ``a = ANY(SELECT ..)``."""
    if _words(tokens, at + 1, 4) != ["(", "array", "(", "select"]:
        return [], 0
    end = _closing(tokens, at + 3)
    if not end or _words(tokens, end + 1, 1) != [")"]:
        return [], 0
    return [*tokens[at : at + 2], *plain_forms(tokens[at + 4 : end + 1])], end + 2


def _substring(tokens: Sequence[Token], at: int) -> Form:
    end = _closing(tokens, at + 1) if _words(tokens, at + 1, 1) == ["("] else 0
    matched = _matched(tokens[at + 2 : end]) if end else []
    return (matched, end + 1) if matched else ([], 0)


def _unnest(tokens: Sequence[Token], at: int) -> Form:
    """``unnest(a, b)`` in FROM: a query with one column for each list."""
    end = _closing(tokens, at + 1) if _words(tokens, at + 1, 1) == ["("] else 0
    arguments = _arguments(tokens[at + 2 : end]) if end else []
    if len(arguments) < 2:
        return [], 0
    numbered = _words(tokens, end + 1, 2) == ["with", "ordinality"]
    lists = _side_by_side(tokens[at], list(map(plain_forms, arguments)), numbered=numbered)
    return [_word(tokens[at], "LATERAL"), *lists], end + (3 if numbered else 1)


_READERS: dict[str, Callable[[Sequence[Token], int], Form]] = {
    "select": _without_columns,
    "any": _any_of_rows,
    "some": _any_of_rows,
    "all": _any_of_rows,
    "substring": _substring,
    "unnest": _unnest,
}


def _matched(inside: Sequence[Token]) -> list[Token]:
    """``substring(a from 'b(c)')``: the part of the text that the brackets of the pattern match.

    If the pattern has no brackets, it is the part that the whole pattern matches.
    """
    if len(inside) < 3 or inside[-2].word != "from" or inside[-1].kind not in ("string", "escape"):
        return []
    pattern = inside[-1]
    group = "1" if "(" in pattern.value else "0"
    # A token of this kind cannot be written by a client.
    name = pattern._replace(kind="macro", text="pgx_matched")
    return [
        name, _op(pattern, "("), *plain_forms(inside[:-2]), _op(pattern, ","), pattern,
        _op(pattern, ","), pattern._replace(kind="number", text=group), _op(pattern, ")"),
    ]  # fmt: skip


def _side_by_side(token: Token, lists: Sequence[Sequence[Token]], *, numbered: bool) -> list[Token]:
    """A query of the lists' elements: a column for each list, and one of row numbers if wanted."""
    found = [_op(token, "("), _word(token, "SELECT")]
    for each in lists:
        found += [_word(token, "unnest"), _op(token, "("), *each, _op(token, ")"), _op(token, ",")]
    if numbered:
        found += [_word(token, "generate_series"), _op(token, "(")]
        found += [token._replace(kind="number", text="1"), _op(token, ",")]
        found += [_word(token, "greatest"), _op(token, "(")]
        for each in lists:
            found += [_word(token, "cardinality"), _op(token, "("), *each]
            found += [_op(token, ")"), _op(token, ",")]
        found[-1:] = [_op(token, ")"), _op(token, ")"), _op(token, ",")]
    found[-1] = _op(token, ")")
    return found


def _arguments(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The arguments of a call: the tokens between its commas."""
    starts, depth = [0], 0
    for at, token in enumerate(tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0 and token.text == ",":
            starts.append(at + 1)
    ends = [*(start - 1 for start in starts[1:]), len(tokens)]
    return [tokens[start:end] for start, end in zip(starts, ends, strict=True)]


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """The position of the bracket that closes the one at ``opening``; 0 if there is none."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        if depth == 0:
            return at
    return 0


def _words(tokens: Sequence[Token], start: int, count: int) -> list[str]:
    return [t.word for t in tokens[max(0, start) : start + count]]


def _word(token: Token, text: str) -> Token:
    return token._replace(kind="word", text=text)


def _op(token: Token, text: str) -> Token:
    return token._replace(kind="op", text=text)
