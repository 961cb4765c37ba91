"""Repairs of the text of statements that do not parse or are not queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.effort import step
from dpsql.sql.bind.scope import spell_name
from dpsql.sql.parameters import STRANGE
from dpsql.sql.parse import Source, read
from dpsql.sql.suggest.candidate import CHANGE, LEAVE_OUT, LOOK_UP, MEND, SUMMARIZE, Candidate
from dpsql.sql.suggest.names import CATALOG
from dpsql.sql.suggest.writer import text_of

_STARTS = ("SELECT", "WITH")
_CLAUSES = {
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET,
    TokenType.JOIN, TokenType.FROM, TokenType.FETCH, TokenType.QUALIFY, TokenType.TABLE_SAMPLE,
}  # fmt: skip
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def respelled_words(
    source: Source, refusal: Refusal, visible: Sequence[str]
) -> Iterator[Candidate]:
    """Texts that are similar to the refused one, each with its notes."""
    text = source.text
    clean = (
        STRANGE.sub("", text)
        .replace("\ufeff", "")
        .replace("\u202e", "")
        .strip()
        .rstrip(";")
        .rstrip()
    )
    if clean != text:
        strange = STRANGE.search(text) is not None
        yield Candidate(clean, MEND, ("without characters that are no text",) if strange else ())
    tokens = _tokens(clean, source.dialect)
    other = bool(tokens) and _word(tokens[0]) not in (*_STARTS, "(")
    if other and refusal.code in ("DP100", "DP102"):
        yield from _query_inside(source, clean, tokens, visible)
    elif refusal.code == "DP102":
        yield from _closed(clean, tokens)
        yield from _cut(clean, tokens, refusal.span)
    elif refusal.code == "DP103":
        yield from _first_statement(clean, tokens)
    elif refusal.code == "DP406":
        yield from _without_option(clean, tokens, refusal)


def _tokens(text: str, dialect: str) -> list[Token]:
    step(len(text))
    try:
        return list(sqlglot.tokenize(text, read=dialect))
    except Exception:  # noqa: BLE001 (a third-party tokenizer may raise anything)
        return []


def _word(token: Token) -> str:
    return (
        "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()
    )


def _closed(text: str, tokens: list[Token]) -> Iterator[Candidate]:
    """Texts with corrected quotes, brackets, commas and lists of outputs, and LIMIT for TOP."""
    if not tokens:
        if "/*" in text:
            yield Candidate(text[: text.rindex("/*")].strip(), MEND)
        for end in ("'", '"', "*/"):
            yield Candidate(text + end, MEND)
    if "`" in text:
        yield Candidate(text.replace("`", '"'), MEND)
    if top := _TOP.match(text):
        rest, count = f"{top[1]} {text[top.end() :]}", top[2]
        yield Candidate(f"{rest} LIMIT {count}", MEND)
    yield from _brackets(text, tokens)
    commas = re.compile(r",(?=\s*(?:\)|FROM\b|WHERE\b|GROUP\b|ORDER\b|$))", re.IGNORECASE)
    if commas.search(text):
        yield Candidate(commas.sub("", text), MEND)
    if re.match(
        r"\s*SELECT\s+(WITH\s+DIFFERENTIAL_PRIVACY\s+(OPTIONS\s*\([^()]*\)\s+)?)?FROM\b",
        text,
        re.IGNORECASE,
    ):
        place = re.search(r"\bFROM\b", text, re.IGNORECASE)
        if place is not None:
            yield Candidate(f"{text[: place.start()]}COUNT(*) {text[place.start() :]}", SUMMARIZE)


_TOP = re.compile(r"\s*(SELECT(?:\s+DISTINCT)?)\s+TOP\s*\(?\s*(\d+)\s*\)?\s", re.IGNORECASE)


def _brackets(text: str, tokens: list[Token]) -> Iterator[Candidate]:
    """Texts with the missing brackets, before one of the clauses or at the end."""
    opened = sum(t.token_type is TokenType.L_PAREN for t in tokens)
    opened -= sum(t.token_type is TokenType.R_PAREN for t in tokens)
    if opened > 0:
        for token in tokens:
            if token.token_type in _CLAUSES:
                yield Candidate(
                    f"{text[: token.start].rstrip()}{')' * opened} {text[token.start :]}", MEND
                )
        yield Candidate(text + ")" * opened, MEND)


def _cut(text: str, tokens: list[Token], span: Span | None) -> Iterator[Candidate]:
    """Texts without the rest from a clause on, without one clause, or without the place itself."""
    end = len(text) if span is None else span.end
    before = [
        i
        for i, t in enumerate(tokens)
        if t.start < end and t.token_type in _CLAUSES - {TokenType.FROM}
    ]
    for index in reversed(before[-4:]):
        start = tokens[index].start
        after = [
            t.start for t in tokens[index + 1 :] if t.token_type in _CLAUSES and t.start >= end
        ]
        for stop in (*after[:1], len(text)):
            said = " ".join(text[start:stop].split())
            yield Candidate(
                f"{text[:start].rstrip()} {text[stop:]}".strip(), LEAVE_OUT, (f"without {said}",)
            )
    if span is not None:
        said = text[span.start : span.end].strip()
        yield Candidate(
            f"{text[: span.start].rstrip()} {text[span.end :].lstrip()}".strip(),
            LEAVE_OUT,
            (f"without {said}",),
        )


def _first_statement(text: str, tokens: list[Token]) -> Iterator[Candidate]:
    ends = [t.start for t in tokens if t.token_type is TokenType.SEMICOLON]
    for start, stop in zip([0, *(e + 1 for e in ends)], [*ends, len(text)], strict=True):
        part = text[start:stop].strip()
        if part:
            said = " ".join((text[:start] + text[stop + 1 :]).split())
            yield Candidate(part, MEND, (f"without {said}: one statement at a time",))


def _without_option(text: str, tokens: list[Token], refusal: Refusal) -> Iterator[Candidate]:
    """Texts with the option that the rule names, without the refused one, or without the clause."""
    span = refusal.span
    inside = [i for i, t in enumerate(tokens) if span and span.start <= t.start < span.end]
    if span is None or not inside:
        return
    here = text[span.start : span.end]
    if _OPTION.fullmatch(refusal.instead) and refusal.instead.split()[0] == here.split()[0].lower():
        said = f"instead of {here}"
        yield Candidate(text[: span.start] + refusal.instead + text[span.end :], CHANGE, (said,))
    clause = _CLAUSE.search(text)
    first, last = inside[0], inside[-1]
    if first and tokens[first - 1].token_type is TokenType.COMMA:
        first -= 1
    elif last + 1 < len(tokens) and tokens[last + 1].token_type is TokenType.COMMA:
        last += 1
    rest = text[: tokens[first].start] + text[tokens[last].end + 1 :]
    if not _EMPTY.search(rest):
        yield Candidate(rest, LEAVE_OUT, (f"without {here}",))
    if clause is not None:
        rest = f"{text[: clause.start()]}{text[clause.end() :]}"
        yield Candidate(rest, LEAVE_OUT + 1, (f"without {clause[0].strip()}",))


_OPTION = re.compile(r"\w+ =>? \S.*")
_EMPTY = re.compile(r"OPTIONS\s*\(\s*\)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"WITH\s+DIFFERENTIAL_PRIVACY(\s+OPTIONS\s*\((?:[^()]|\([^()]*\))*\))?\s*", re.IGNORECASE
)


def _query_inside(
    source: Source, text: str, tokens: list[Token], visible: Sequence[str]
) -> Iterator[Candidate]:
    """The query inside a statement of another kind, or COUNT(*) of the table that it names."""
    said = f"{_word(tokens[0])} is not answered"
    for index, token in enumerate(tokens):
        if _word(token) in _STARTS:
            rest = text[token.start :]
            depth, stop = 0, len(rest)
            for later in tokens[index:]:
                depth += (later.token_type is TokenType.L_PAREN) - (
                    later.token_type is TokenType.R_PAREN
                )
                if depth < 0:
                    stop = later.start - token.start
                    break
            yield Candidate(rest[:stop].strip(), LEAVE_OUT, (said,))
            break
    names = {table.casefold(): table for table in visible}
    about = [
        names[t.text.casefold()]
        for t in tokens
        if t.text.casefold() in names and t.token_type in _NAMES
    ]
    for table in about[:1]:
        where = _condition(source)
        yield Candidate(
            f"SELECT COUNT(*) FROM {spell_name(table)}{where}", SUMMARIZE,
            (f"{said}; this counts the rows that it is about",),
        )  # fmt: skip
    if not about:
        yield Candidate(
            CATALOG, LOOK_UP,
            (f"{said}; this lists what may be asked about",),
        )  # fmt: skip


def _condition(source: Source) -> str:
    """The WHERE clause of a DELETE or UPDATE, or ""."""
    try:
        _, tree = read(source)
    except Refused:
        return ""
    where = tree.args.get("where")
    if not isinstance(where, exp.Where):
        return ""
    condition = text_of(where.this, source)
    return f" WHERE {condition}" if condition else ""
