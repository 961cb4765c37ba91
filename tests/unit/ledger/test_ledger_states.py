"""The life of a hold."""

from __future__ import annotations

from dpsql.ledger.states import MOVES, State, may


def test_every_hold_is_reserved_or_started_first():
    assert {state for state in State if may(None, state)} == {State.RESERVED, State.STARTED}


def reachable(state):
    return MOVES[state].union(*(reachable(then) for then in MOVES[state]))


def test_after_the_start_no_way_leads_to_a_refund():
    assert State.CANCELLED in reachable(State.RESERVED)
    assert State.CANCELLED not in reachable(State.STARTED)


def test_a_hold_ends_once():
    ends = {State.COMMITTED, State.FORFEITED, State.CANCELLED}
    assert {state for state in State if not state.open} == ends
    assert all(not reachable(state) for state in ends)


def test_an_answer_leaves_only_after_the_start():
    assert [state for state in State if may(state, State.COMMITTED)] == [State.STARTED]


def test_only_the_cancelled_are_not_spent():
    assert [state for state in State if not state.spent] == [State.CANCELLED]
