"""Faults of the ledger: what is not charged, given back, or believed."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "what failed is given back",
        "ledger",
        (
            Edit(
                "pipeline.py",
                "        tools.ledger.forfeit(hold)\n",
                "        tools.ledger.cancel(hold)\n",
            ),
            Edit(
                "ledger/states.py",
                "    State.STARTED: frozenset({State.COMMITTED, State.FORFEITED}),",
                "    State.STARTED: frozenset({State.COMMITTED, State.FORFEITED, State.CANCELLED}),",
            ),
        ),
        "Questions whose engine fails or is stopped cost nothing, and whether and when they failed was seen.",
        "refund after contact",
    ),
    Fault(
        "the bill comes after the measurement",
        "ledger",
        (
            Edit(
                "pipeline.py",
                "    hold = _reserve(due, payer, tools)\n    try:\n        noisy, new = merge(priced, sources, measure(parts, statements, public, tools))\n",
                "    noisy, new = merge(priced, sources, measure(parts, statements, public, tools))\n    hold = _reserve(due, payer, tools)\n    try:\n        pass\n",
            ),
        ),
        "Questions that are stopped while the engine works are not charged, and nothing is refused before it worked.",
        "charge after answer",
    ),
    Fault(
        "answers leave although nothing was noted",
        "ledger",
        (
            Edit(
                "pipeline.py",
                "    _note(payer, lambda: tools.ledger.commit(hold, new))\n",
                "    try:\n        _note(payer, lambda: tools.ledger.commit(hold, new))\n    except LedgerFailed:\n        pass\n",
            ),
            Edit(
                "pipeline.py",
                "    hold = _reserve(due, payer, tools)\n    try:\n",
                "    try:\n        hold = _reserve(due, payer, tools)\n    except LedgerFailed:\n        hold = Hold(0, (), None)  # type: ignore[arg-type]\n    try:\n",
            ),
        ),
        "While the ledger cannot be written, questions are answered for nothing.",
        "answers without a ledger (DESIGN, rule 5)",
    ),
    Fault(
        "an older copy of the ledger is taken",
        "ledger",
        (
            Edit(
                "ledger/writer.py",
                "        if self._head.seq and rows.hash_of(db, self._head.seq) != self._head.hash:",
                "        if self._head.seq < 0 and rows.hash_of(db, self._head.seq) != self._head.hash:",
            ),
        ),
        "Putting a copy back from before gives the budget back, although a head is noted.",
        "ledger rollback",
    ),
    Fault(
        "the data set is not charged",
        "ledger",
        (
            Edit(
                "service/session.py",
                "        payer = Payer(accounts, note, policy.answers_key,",
                "        payer = Payer(accounts[1:], note, policy.answers_key,",
            ),
        ),
        "Several roles together spend more than the owner allows for the data set.",
    ),
    Fault(
        "a session's account is new each time",
        "ledger",
        (
            Edit(
                "ledger/accounts.py",
                "    session_key = f\"session:{named}/{quote(session_name, safe='')}\"",
                "    session_key = f\"session:{named}/{quote(session_name, safe='')}.{now:%H%M%S%f}\"",
            ),
        ),
        "Reconnecting, or asking again, gives a session's budget back.",
        "budgets belong to durable accounts (DESIGN, rule 9)",
    ),
    Fault(
        "a month is a day",
        "ledger",
        (
            Edit(
                "ledger/accounts.py",
                '            return f"{day:%Y-%m}", following',
                '            return f"{day:%Y-%m-%d}", following',
            ),
        ),
        "A budget for a month is there anew each day.",
        "windows that begin with nothing spent",
    ),
    Fault(
        "the last query is not looked at",
        "ledger",
        (
            Edit(
                "ledger/balance.py",
                "return not self.closed and rule.admits(self.account, self.spent + charge)",
                "return not self.closed and rule.admits(self.account, self.spent)",
            ),
        ),
        "An account is overspent by one query of any size.",
    ),
    Fault(
        "small charges are rounded down",
        "ledger",
        (
            Edit(
                "ledger/charge.py",
                "    return -((-value.numerator * unit) // value.denominator)",
                "    return (value.numerator * unit) // value.denominator",
            ),
        ),
        "A question of 1.9 billionths of epsilon is charged as one, as often as it is asked.",
    ),
    Fault(
        "a query has no limit of its own",
        "ledger",
        (
            Edit(
                "ledger/shortage.py",
                "        if allowed is not None and costs > allowed:\n",
                "        if allowed is not None and costs > allowed * 10**9:\n",
            ),
        ),
        "One query may spend all that is left, against the policy.",
    ),
    Fault(
        "what a killed process had begun is given back",
        "ledger",
        (
            Edit(
                "ledger/tables.py",
                "                rows.set_state(db, hold, State.FORFEITED)\n",
                "                rows.set_state(db, hold, State.FORFEITED)\n                accounts, charge = rows.charged(db, hold)\n                spent = zip(accounts, rows.spent_by(db, accounts), strict=True)\n                rows.set_spent(db, {account: (was, was - charge) for account, was in spent})\n",
            ),
        ),
        "A question whose server is killed after the engine answered costs nothing.",
        "refund after contact",
    ),
    Fault(
        "delta may be spent twice",
        "ledger",
        (
            Edit(
                "ledger/filter.py",
                "    return account.delta // 2 if account.zcdp else account.delta",
                "    return account.delta",
            ),
            Edit(
                "ledger/filter.py",
                "    return account.delta // 4\n\n\ndef rho_limit",
                "    return account.delta\n\n\ndef rho_limit",
            ),
        ),
        "A zCDP account promises its delta, and admits twice as much by its two ways.",
    ),
    Fault(
        "new noise is free where an answer is stored",
        "ledger",
        (
            Edit(
                "pipeline.py",
                "    due = sources.due\n",
                "    due = sources.due\n    if payer.fresh and tools.ledger.related_releases([s.piece.family for s in sources.pieces]):\n        due = Due(due.parts, Cost.zero(), due.events)\n",
            ),
        ),
        "SET dpsql.fresh draws new noise for nothing: averaging takes it away.",
    ),
)
