"""What an owner promised, and which edits of a policy promise less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ledger_world import EVENT, NOTE, pure
from support.services import policy

from dpsql.diagnostics.refusal import PolicyError
from dpsql.ledger.accounts import accounts_for
from dpsql.ledger.terms import adopt, find_loosened_terms, terms_of

BEFORE = policy("shop", "shop")
ACCOUNT = "    max_rows_per_unit: 50\n"


COUNTED = "what was spent since the new window began counts in it"


def edited(*changes: tuple[str, str]):
    def change(text: str) -> str:
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    return policy("shop", "shop", change)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{epsilon: 20, delta: 1e-5", "{epsilon: 30, delta: 1e-5", "the data set: epsilon is 30; it was 20"),
        ("{epsilon: 20, delta: 1e-5", "{epsilon: 20, delta: 1e-4", "the data set: delta is 0.0001; it was 1e-5"),
        ("per: month", "per: week", f"role analyst: it renews every week; before, every month; {COUNTED}"),
        ("per: month", "per: year", f"role analyst: it renews every year; before, every month; {COUNTED}"),
        ("    per: month\n", "", f"role analyst: it renews not at all; before, every month; {COUNTED}"),
        ("roles:\n", "time_zone: Europe/Berlin\nroles:\n", f"windows begin at midnight of Europe/Berlin; before, of UTC; {COUNTED}"),
        ("session: {epsilon: 1}", "session: {epsilon: 1, per: day}", f"a session of role analyst: it renews every day; before, not at all; {COUNTED}"),
        ("query: {epsilon: 0.1}", "query: {epsilon: 0.2}", "a query of role analyst: epsilon is 0.2; it was 0.1"),
        ("group_size: 1}", "group_size: 2}", None),
        ("roles:\n", "roles:\n  intern: {epsilon: 1}\n", "role intern: it is new"),
        (", identifier: true}", "}", "column customers.email: it is no longer an identifier"),
        ("      city: {type: text}\n", "      city: {type: text}\n      street: {type: text}\n", "column customers.street: it is new"),
        ("max_groups_per_unit: 3", "max_groups_per_unit: 5", None),
        ("query: {epsilon: 0.1}", "query: {epsilon: 0.05}", None),
        ('data_version: "2026-11-01"', 'data_version: "2026-12-01"', None),
    ],
)  # fmt: skip
def test_what_an_edit_loosens(old, new, said):
    found = find_loosened_terms(terms_of(BEFORE), terms_of(edited((old, new))))
    assert found == (() if said is None else (said,))


def rated(*changes: tuple[str, str]):
    def change(text: str) -> str:
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    return terms_of(policy("ratings", "ratings", change))


def test_another_key_is_other_people():
    before = rated()
    assert before["keys"]["replies"] == "(rating) to ratings, (s)"
    assert find_loosened_terms(before, rated(("unit_key: who ", "unit_key: minutes "))) == (
        "table logins: its units are told apart by (minutes); before, by (who)",
    )
    assert (
        find_loosened_terms(
            before, rated(("  student: {key: s}", "  student: {key: s, group_size: 2}"))
        )
        == ()
    )
    older = {name: part for name, part in before.items() if name not in ("keys", "time_zone")}
    assert find_loosened_terms(older, before) == ()
    assert terms_of(policy("rows", "shop"))["keys"]["visits"] == "each row"


def test_edits_the_other_way_round():
    def back(*changes):
        return find_loosened_terms(terms_of(edited(*changes)), terms_of(BEFORE))

    assert back(("group_size: 1}", "group_size: 5}")) == (
        "unit customer: 1 are protected together; before, 5 were",
    )
    assert back((ACCOUNT, f"{ACCOUNT}    account: {{epsilon: 2}}\n")) == (
        "table orders: it no longer has an account of its own",
    )
    assert back(("max_groups_per_unit: 3", "tables: [orders]")) == (
        "role analyst: it sees countries, customers, visits",
    )
    assert back(("delta: 1e-5, composition: zcdp", "delta: 1e-5, composition: basic"))[0] == (
        "the data set: composition is zcdp; it was basic"
    )


def test_accounts_and_roles_that_come_and_go_loosen_nothing_else():
    more = edited(
        (ACCOUNT, f"{ACCOUNT}    account: {{epsilon: 2}}\n"),
        ("roles:\n", "roles:\n  intern: {epsilon: 1}\n"),
    )
    assert find_loosened_terms(terms_of(more), terms_of(BEFORE)) == (
        "table orders: it no longer has an account of its own",
    )
    assert find_loosened_terms(terms_of(BEFORE), terms_of(more)) == ("role intern: it is new",)


def test_a_table_that_becomes_public():
    old, new = terms_of(BEFORE), terms_of(BEFORE)
    new["units"]["visits"] = None
    assert find_loosened_terms(old, new) == ("table visits: it is public; it was customer",)


def test_terms_are_noted_once_and_when_they_change(ledger, clock):
    assert adopt(BEFORE, ledger, clock()) == ()
    assert adopt(BEFORE, ledger, clock()) == ()
    assert adopt(edited(("2026-11-01", "2026-12-01")), ledger, clock()) == ()
    [said] = adopt(
        edited(("{epsilon: 20", "{epsilon: 30"), ("2026-11-01", "2026-12-01")), ledger, clock()
    )
    assert adopt(replace(BEFORE, version="another"), ledger, clock()) == ()
    assert adopt(replace(BEFORE, version="a third"), ledger, clock()) == ()
    records = [record.content for record in ledger.events()]
    assert [record["owner"] for record in records] == [
        "first policy",
        "data version",
        "policy changed",
        "policy changed",
        "policy changed",
    ]
    assert records[2]["loosened"] == [said]
    assert ledger.terms()["limits"]["the data set"][0] == "20"
    assert ledger.verify().sound


def test_a_limit_below_what_is_spent_is_refused(ledger, clock):
    adopt(BEFORE, ledger, clock())
    accounts = accounts_for(BEFORE, "pure", now=clock())
    ledger.reserve(accounts, pure("1.5"), [EVENT], NOTE)
    lower = edited(("session: {epsilon: 2}", "session: {epsilon: 1}"))
    with pytest.raises(
        PolicyError, match=r"session .default. of role .pure. is below what is spent"
    ):
        adopt(lower, ledger, clock())
    assert len(list(ledger.events())) == 2
    adopt(edited(("session: {epsilon: 2}", "session: {epsilon: 1.5}")), ledger, clock())


def test_edited_terms_are_found(ledger, path, clock):
    adopt(BEFORE, ledger, clock())
    ledger.note_terms({}, "odd")
    assert ledger.verify().sound
    db = ledger._writer.connection
    db.execute('UPDATE event SET json = \'{"owner":1,"terms":1}\' WHERE seq = 2')
    assert "record 2: it cannot be read" in ledger.verify().problems
