"""Every statement of the grammar is answered, or refused for privacy or budget."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from samples import COLUMNS, GRAMMAR, TABLES, codes, grammar, misses, simplest, statements
from shop import PURE, catalog, outcome, refusal
from sqlglot import exp

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.functions import RECORDS
from dpsql.diagnostics.refusal import Refused
from dpsql.diagnostics.render import refusal_text
from dpsql.price.priced import PricedPlan
from dpsql.sql.allow import ALLOWED
from dpsql.sql.parse import Source, parse

SEMANTIC = {"DP112", "DP203", "DP204", "DP304", "DP404", "DP501", "DP502"}
"""What a statement of the dialect may be refused with: subqueries, bounds, fan-out, budget, groups."""


def examples(share: int) -> settings:
    """A share, in parts of 100, of the examples that the profile asks for."""
    most = settings.default.max_examples if settings.default else 100
    return settings(max_examples=most * share // 100, phases=[Phase.generate])


def any_of(name: str, start: str) -> st.SearchStrategy[str]:
    return st.one_of([statements(name, table, start) for table in TABLES])


def inside(refused: Refused, text: str) -> None:
    for one in refused.refusals:
        if one.span is not None:
            assert 0 <= one.span.start < one.span.end <= len(text)
    assert refusal_text(refused).startswith(f"{refused.code}: ")


@examples(90)
@given(any_of("dialect.lark", "start"))
def test_a_statement_of_the_dialect_is_priced_or_refused_for_a_reason(text: str) -> None:
    note(text)
    found = outcome(text)
    if isinstance(found, Refused):
        assert {r.code for r in found.refusals} <= SEMANTIC
        inside(found, text)
    else:
        assert isinstance(found, PricedPlan)


@examples(15)
@given(any_of("dialect.lark", "start"))
def test_without_delta_too(text: str) -> None:
    refused = refusal(text, request=PURE)
    if refused is not None:
        assert {r.code for r in refused.refusals} <= SEMANTIC
        inside(refused, text)


@examples(15)
@given(any_of("dialect.lark", "start"))
def test_the_grammar_reads_what_it_writes(text: str) -> None:
    grammar("dialect.lark").parse(text)


@examples(20)
@given(any_of("dialect.lark", "start"), st.data())
def test_a_broken_statement_never_ends_in_anything_but_a_refusal(
    text: str, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(text)))
    other = data.draw(st.sampled_from(["", "(", ")", "'", '"', ",", "--", "/*", "NULL", "::", "?"]))
    cut = data.draw(st.integers(0, 12))
    broken = text[:place] + other + text[place + cut :]
    refused = refusal(broken)
    if refused is not None:
        inside(refused, broken)


@pytest.mark.parametrize("table", TABLES)
def test_each_production_is_answered_or_refused_for_a_reason(table: str) -> None:
    tried = 0
    for rule, text in simplest("dialect.lark", table):
        refused = refusal(text)
        if refused is not None:
            assert {r.code for r in refused.refusals} <= SEMANTIC, (rule, text, refused)
            inside(refused, text)
        tried += 1
    assert tried > 300


# --- near misses ----------------------------------------------------------------------------


@examples(80)
@given(st.one_of([misses(table) for table in TABLES]))
def test_a_near_miss_is_refused_with_its_code(miss: tuple[str, frozenset[str]]) -> None:
    text, wanted = miss
    note(text)
    refused = refusal(text)
    assert refused is not None, wanted
    assert {r.code for r in refused.refusals} & wanted, (refused.code, wanted)
    inside(refused, text)


@pytest.mark.parametrize("table", TABLES)
def test_each_near_miss_is_refused_with_its_code(table: str) -> None:
    tried = 0
    for rule, text in simplest("near_misses.lark", table, "near_miss"):
        wanted = codes(rule)
        if wanted:
            refused = refusal(text)
            assert refused is not None, (rule.alias, text)
            assert refused.code in wanted, (rule.alias, text, refused)
            inside(refused, text)
            tried += 1
    assert tried > 80


# --- the grammar is about the fixture, and about what dpsql reads ---------------------------


def test_columns_of_the_grammar_are_those_of_the_policy() -> None:
    tables = catalog().policy.tables
    for table, terminals in COLUMNS.items():
        listed = {name for names in terminals.values() for name in names}
        columns = {c.name for c in tables[table].columns.values() if not c.identifier}
        assert listed == columns - {"customer_id"}
    tokens = (GRAMMAR / "tokens.lark").read_text()
    for column in {c for t in COLUMNS for c in tables[t].columns}:
        assert re.search(rf"\b{column}\b", tokens), column


NOT_IN_GRAMMAR = {
    exp.Placeholder: "parameters are given apart from the text",
    exp.Parameter: "as above",
    exp.DateTrunc: "PostgreSQL's DATE_TRUNC is read as TimestampTrunc",
}


def test_the_grammar_reaches_what_is_listed() -> None:
    texts = [text for table in TABLES for _, text in simplest("dialect.lark", table)]
    records = (*AGGREGATES.values(), *RECORDS.values())
    texts += [f"SELECT {call}" for record in records for call in record.examples]
    reached = {type(node) for text in texts for node in parse(Source(text)).tree.walk()}
    missing = set(ALLOWED) - reached - set(NOT_IN_GRAMMAR)
    assert not missing, sorted(k.__name__ for k in missing)


def test_folder_tells_what_it_holds() -> None:
    readme = (GRAMMAR / "README.md").read_text()
    for file in GRAMMAR.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in readme, file.name
    assert Path(__file__).parent.name == "grammar"


@pytest.mark.parametrize("name", ["tokens.lark", "dialect.lark", "near_misses.lark"])
def test_rules_stand_below_a_word_about_them(name: str) -> None:
    blocks = (GRAMMAR / name).read_text().strip().split("\n\n")
    bare = [b for b in blocks if not b.startswith(("//", "%")) and b.count("\n") > 8]
    assert not [b.splitlines()[0] for b in bare]
