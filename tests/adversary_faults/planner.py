"""Faults of the planner: who is a unit, what a unit may add, how it is priced, what is a label.

Where the second check would stop a statement, it is blinded for just that.
"""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "the sign of a zero is a label",
        "planner",
        (
            Edit(
                "engines/duckdb/expressions.py",
                '    if kind is not Kind.DOUBLE:\n        return text\n    return f"CASE WHEN isnan',
                '    if kind:\n        return text\n    return f"CASE WHEN isnan',
            ),
            Edit(
                "engines/duckdb/guard/facts.py",
                "return kind in SAME_BYTES or self.canonical",
                "return kind in SAME_BYTES or kind == DOUBLE or self.canonical",
            ),
        ),
        "A group's label shows the sign bit of whichever row came first, and so one person's attributes.",
        "issue 12: labels of groups, ages read from the signs of zeros",
    ),
    Fault(
        "texts that a collation takes for equal are one group",
        "planner",
        (
            Edit(
                "engines/duckdb/collations.py",
                'frozenset(["", "binary", "c", "posix"])',
                'frozenset(["", "binary", "c", "posix", "nocase"])',
            ),
        ),
        "A group is named by the spelling of whichever row came first, so one person's spelling is shown.",
        "issue 12: labels of groups, collated columns",
    ),
    Fault(
        "a unit's key may be there twice",
        "planner",
        (
            Edit(
                "declarations/requirements.py",
                "    if read and set(held) <= IDENTICAL and any(columns <= set(key) for columns in there.unique):",
                "    if set(held) <= IDENTICAL:",
            ),
        ),
        "A table with many rows of one person is taken for one row each, so one person moves sums without a bound.",
        "issue 12: a duplicated unit key was accepted (73,421 ratings by 2,972 students)",
    ),
    Fault(
        "a view of the time is verified once",
        "planner",
        (
            Edit(
                "engines/duckdb/definitions.py",
                """        reads.setdefault(name.lower(), set()).update(read)\n        if reason:""",
                """        reads.setdefault(name.lower(), set()).update(read)\n        if not reason:\n            continue\n        if "now" not in reason:""",
            ),
        ),
        "A view whose rows change by themselves keeps its declarations at open, and not afterwards.",
        "stop 24: views of the time were verified once and believed",
    ),
    Fault(
        "one row for each unit is believed",
        "planner",
        (
            Edit(
                "declarations/requirements.py",
                "unit is None or unit.is_row or table.max_rows_per_unit > 1 or unit.table",
                "unit is None or unit.is_row or table.max_rows_per_unit > 0 or unit.table",
            ),
        ),
        "A table declared with max_rows_per_unit 1 that has more rows of a person is answered with noise for one.",
        "issue 12: declarations that claims assume were not verified",
    ),
    Fault(
        "joins need not be on the unit",
        "planner",
        (
            Edit(
                "sql/bind/join_rules.py",
                "    return all(known.closure(a) & b for a, b in zip(left.key, right.key, strict=True))",
                "    return True",
            ),
            Edit(
                "engines/duckdb/guard/joins.py",
                "    if states == {PRIVATE} and not (_units(pairs, left, right) or _owners(pairs)):",
                "    if states == {PRIVATE, MEASURED}:",
            ),
        ),
        "Rows of one person meet rows of everybody else and are counted once for each.",
        "stop 10: private joins on any equality",
    ),
    Fault(
        "joins need only a part of a composite key",
        "planner",
        (
            Edit(
                "sql/bind/join_rules.py",
                "    return all(known.closure(a) & b for a, b in zip(left.key, right.key, strict=True))",
                "    return any(known.closure(a) & b for a, b in zip(left.key, right.key, strict=True))",
            ),
            Edit(
                "engines/duckdb/guard/joins.py",
                "    return bool(left.parts) and left.parts == right.parts == len(covered)",
                "    return bool(left.parts) and left.parts == right.parts and bool(covered)",
            ),
        ),
        "Rows of one person meet rows of all who share a part of the key.",
        "stop 10: private joins on less than the unit",
    ),
    Fault(
        "a public table's fan-out is forgotten",
        "planner",
        (
            Edit(
                "sql/bind/join_rules.py",
                "    most = _most_met(public, known)\n    return max(1",
                "    most = min(1, _most_met(public, known))\n    return max(1",
            ),
        ),
        "A person's row is counted once for each public row that it meets, with noise for one.",
    ),
    Fault(
        "a UNION ALL has the rows of one side",
        "planner",
        (
            Edit(
                "sql/bind/privacy.py",
                "max_rows=sum(p.max_rows for p in private)",
                "max_rows=max(p.max_rows for p in private)",
            ),
        ),
        "A person counts once for each side of a UNION ALL, with noise for one side.",
        "stop 10: UNION ALL and a unit's rows",
    ),
    Fault(
        "the square of a unit's groups is not taken",
        "planner",
        (
            Edit(
                "bound/group_caps.py",
                "        return Sensitivity(Fraction(k * c), Fraction(k * c * c))",
                "        return Sensitivity(Fraction(k * c), Fraction(k * c))",
            ),
        ),
        "Gaussian noise over groups is narrower than a person with several rows in a group needs.",
    ),
    Fault(
        "a household counts as one person",
        "planner",
        (
            Edit(
                "bound/sensitivity.py",
                "    size = bounding.size\n    if",
                "    size = 1\n    if",
            ),
        ),
        "Where the policy protects groups of several units, noise is for one of them.",
    ),
    Fault(
        "the farther end of a range is not looked at",
        "planner",
        (
            Edit(
                "bound/grid.py",
                "return max(abs(self.low - self.centre), abs(self.high - self.centre), 1)",
                "return max(min(abs(self.low - self.centre), abs(self.high - self.centre)), 1)",
            ),
        ),
        "A sum of values of an uneven range gets noise for the nearer end: one value is seen through it.",
    ),
    Fault(
        "halves move once, not twice",
        "planner",
        (
            Edit(
                "price/halves.py",
                "    moved = 2 * reach * sensitivity(Rows(), one, bounding).l1",
                "    moved = reach * sensitivity(Rows(), one, bounding).l1",
            ),
        ),
        "SUM beside COUNT has half of the noise that is charged.",
        "stop 10: halves under-priced",
    ),
    Fault(
        "declared values bound a prepared copy",
        "planner",
        (
            Edit(
                "bound/sensitivity.py",
                "    if not bounding.reads_units:\n        return most\n",
                "",
            ),
        ),
        "A person with values that are not declared moves the number of different values on a prepared copy"
        " by all of them, with noise for the declared ones.",
        "COUNT(DISTINCT x) on a prepared copy was priced for the declared values",
    ),
    Fault(
        "whole numbers that are one double are two keys",
        "planner",
        (
            Edit(
                "declarations/requirements.py",
                'WIDE = frozenset({"BIGINT", "UBIGINT", "HUGEINT"})',
                "WIDE = frozenset[str]()",
            ),
        ),
        "A join on a key that is read as a double finds two rows for one, and a person counts for both.",
        "keys above 2^53 were verified as they are stored, and compared as doubles",
    ),
    Fault(
        "a view that adds rows up is read again and again",
        "planner",
        (
            Edit(
                "engines/duckdb/definitions.py",
                "    return frozenset(_with_readers(found, reads))\n",
                "    return frozenset()\n",
            ),
        ),
        "Threads add doubles in another order in each reading, so a condition finds a person's rows in one"
        " place of a statement and not in the next, where they should be weighed.",
        "20,000 rows of one person in a view of sums moved a count by 20,000",
    ),
    Fault(
        "copies of another database are read",
        "planner",
        (
            Edit(
                "engines/duckdb/copies.py",
                'found["state"] != State.of(path).text and found["digest"] != digest_of(path)',
                "found is None",
            ),
        ),
        "What is verified of a database is believed of copies of another one, in which a person may have any"
        " number of rows where one is declared.",
        "copies beside a database of the same size and time were read",
    ),
    Fault(
        "keys that differ by nanoseconds are one unit",
        "planner",
        (
            Edit(
                "policy/source.py",
                'return engine_type.strip().upper() == "TIMESTAMP_NS"',
                'return engine_type.strip().upper() == "NONE"',
            ),
        ),
        "Two people are capped together, so one of them moves a sum from one end of the cap to the other.",
        "keys of units with a table could be TIMESTAMP_NS",
    ),
    Fault(
        "a unit keeps all of its groups",
        "planner",
        (
            Edit(
                "bound/first_groups.py",
                "    if not bounding.limit:\n        return groups, None",
                "    if bounding.groups:\n        return groups, None",
            ),
            Edit(
                "rewrite/rank_prefilter.py",
                "    return bounding.limit and fits",
                "    return False and bounding.limit and fits",
            ),
        ),
        "A person who is in many groups moves all of them, with noise for a few.",
    ),
    Fault(
        "a unit's rows in a group are not cut",
        "planner",
        (
            Edit(
                "bound/by_unit.py",
                '        return Op("least", (value, Number(per_group)))',
                "        return value",
            ),
            Edit(
                "engines/duckdb/guard/sums.py",
                '    if groups == "all" and first.many:',
                '    if groups == "none" and first.many:',
            ),
        ),
        "A person with more rows than declared moves a count by all of them.",
        "stop 10: uncapped sums passed the second check",
    ),
    Fault(
        "twice as many rows weigh in full",
        "planner",
        (
            Edit(
                "bound/row_weights.py",
                '        having = Op(">", (number, Number(weights.rows)))',
                '        having = Op(">", (number, Number(2 * weights.rows)))',
            ),
        ),
        "A person with up to twice the declared rows counts with all of them, with noise for half.",
    ),
    Fault(
        "rows weigh in full under strict timing",
        "planner",
        (
            Edit(
                "bound/row_weights.py",
                'share = Op("//", (most, Op("greatest", (number, Number(1)))))',
                'share = Op("//", (most, Op("least", (number, Number(1)))))',
            ),
            Edit(
                "engines/duckdb/guard/sums.py",
                '    if groups == "all" and first.many:',
                '    if groups == "none" and first.many:',
            ),
        ),
        "Under strict_timing a person with more rows than declared counts with all of them.",
    ),
    Fault(
        "one unit's groups are enough for a threshold",
        "planner",
        (
            Edit(
                "price/price.py",
                "    groups, extra = bounding.groups * bounding.size, bounding.size - 1",
                "    groups, extra = bounding.groups * bounding.size, 0",
            ),
        ),
        "A group that only one household is in is shown with more than delta.",
        "issue 15: households' thresholds",
    ),
    Fault(
        "a threshold costs no delta",
        "planner",
        (
            Edit(
                "price/charge.py",
                "    threshold = selections * share.selection_delta\n",
                "    threshold = selections * share.selection_delta * 0\n",
            ),
        ),
        "Groups that pass a threshold are shown as often as asked while no delta is spent.",
        "thresholds without delta",
    ),
    Fault(
        "several statistics cost what one does",
        "planner",
        (
            Edit(
                "price/charge.py",
                "    return Cost(share.epsilon * share.statistics, threshold, rho, threshold)",
                "    return Cost(share.epsilon, threshold, share.rho, threshold)",
            ),
        ),
        "A query of ten sums is charged a tenth of its epsilon.",
    ),
    Fault(
        "gaussian statistics cost the rho of one",
        "planner",
        (
            Edit(
                "price/charge.py",
                "        epsilon, rho = share.label * share.statistics, share.rho * share.statistics",
                "        epsilon, rho = share.label * share.statistics, share.rho",
            ),
        ),
        "A zCDP account is charged for one of many statistics.",
    ),
    Fault(
        "NULL counts as the upper end",
        "planner",
        (
            Edit(
                "engines/duckdb/terms.py",
                '        f" WHEN {text} > {ends[1]} THEN {_end(most, node)} END"\n',
                '        f" ELSE {_end(most, node)} END"\n',
            ),
        ),
        "Sums count rows without a value, which the number of rows beside them does not.",
        "nullable values in clamps (DESIGN, rule 3)",
    ),
    Fault(
        "what is no number counts as the middle",
        "planner",
        (
            Edit(
                "engines/duckdb/terms.py",
                """        f" WHEN {text} > {ends[1]} THEN {_end(most, node)} END"\n""",
                """        f" WHEN {text} > {ends[1]}{'' if node.whole else f' AND NOT isnan({text})'} THEN {_end(most, node)} END"\n""",
            ),
        ),
        "NaN is in the number of rows and not in their total, which one person may move by a whole range.",
        "stop 24: NaN counted as the middle of a range",
    ),
    Fault(
        "values below their range keep their size",
        "planner",
        (
            Edit(
                "engines/duckdb/terms.py",
                '        f" WHEN {text} < {ends[0]} THEN {_end(least, node)}"\n',
                '        f" WHEN {text} < {ends[0]} THEN {_rounded(text, node) + less if node.whole else _end(least, node)}"\n',
            ),
            Edit(
                "engines/duckdb/guard/sums.py",
                "    whole = doubles or (first.kind == WHOLE and first.bounded)",
                "    whole = doubles or first.kind == WHOLE",
            ),
            Edit(
                "engines/duckdb/guard/sums.py",
                "    if first.kind == WHOLE and not first.bounded and first.bits > 63:",
                "    if first.kind == WHOLE and not first.bounded and first.bits > 163:",
            ),
            Edit(
                "engines/duckdb/guard/statement.py",
                "(fact.kind == WHOLE and fact.bounded and fact.exact)",
                "(fact.kind == WHOLE and fact.exact)",
            ),
        ),
        "One row with a value far below its declared range moves a sum by all of it.",
        "clamps (DESIGN, rule 3)",
    ),
    Fault(
        "a better answer is charged as its noise before",
        "planner",
        (
            Edit(
                "reuse/measured.py",
                "    return Cost(sum((c.epsilon for c in costs), Fraction(0)), threshold, rho, threshold)",
                "    return Cost(max((c.epsilon for c in costs), default=Fraction(0)), threshold, rho / max(1, len(costs)), threshold)",
            ),
        ),
        "Asking a part of what is stored and a part that is new is charged less than the new noise.",
    ),
    Fault(
        "an answer survives another version of the data",
        "planner",
        (
            Edit(
                "policy/version.py",
                '        "data_version": _ANSWERS,',
                '        "data_version": _TERMS,',
            ),
        ),
        "Answers about data that is gone are given as answers about what is there now.",
        "recall across policy change",
    ),
    Fault(
        "an answer of all rows answers for some",
        "planner",
        (
            Edit(
                "reuse/canonical.py",
                "                block.require(predicate)\n                return block",
                "                return block",
            ),
        ),
        "A question with a condition gets the stored number of the question without it.",
        "stored answers recalled for another question",
    ),
)
