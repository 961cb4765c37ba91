"""What a query becomes: measurements, bounding, noise, cost and generated SQL, in golden files.

Each rewrite has a file of its name, where it is applied in each case but those that say ``rule=rests``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from datadriven import Case, check, read
from support.shop import ANALYST, PURE, catalog, priced

import dpsql.rewrite
from dpsql.bound.copies import companion
from dpsql.engines.duckdb.statements import list_statements
from dpsql.policy.prepared_copies import PreparedCopies
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.price.show import show
from dpsql.rewrite import rules
from dpsql.rewrite.draft import Draft
from dpsql.rewrite.statement import statement_of

FILES = sorted((Path(__file__).parents[2] / "fixtures" / "rewrites").glob("*.test"))
RULES = {rule.__name__: rule for rule in rules.RULES}
RULE_FILES = [path for path in FILES if path.stem in RULES]
REQUESTS: dict[str, Request] = {
    "analyst": ANALYST,
    "pure": PURE,
    "gaussian": replace(ANALYST, delta=Fraction(1, 10**6), mechanism="gaussian"),
    "wide": replace(ANALYST, delta=Fraction(1, 10**6), groups=50),
}


def plan_of(case: Case) -> PricedPlan:
    """The plan of a case, as its directive asks for it."""
    policy = f"policies/{case.options.get('policy', 'shop')}.yaml"
    name = case.options.get("request", "analyst")
    request = replace(ANALYST, shelf=shelf(policy)) if name == "prepared" else REQUESTS[name]
    return priced(case.text, policy=policy, request=request)


def shelf(policy: str) -> PreparedCopies:
    """Copies of all private tables."""
    tables = catalog(policy).policy.tables.values()
    return PreparedCopies({t.name: companion(t) for t in tables if not t.public})


def printed(case: Case) -> str:
    """The plan, if what the directive claims of it is true."""
    options, plan = case.options, plan_of(case)
    for part in plan.parts:
        bounded = options.get("bounded", part.bounding.name).replace("_", " ")
        assert part.bounding.name == bounded, f"{case}: bounded by {part.bounding.name}"
        groups = "public" if part.selection is None else "thresholded"
        assert options.get("groups", groups) == groups, f"{case}: groups are {groups}"
    return show(plan, list_statements)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plans_are_as_written(path: Path, rewrite: bool) -> None:
    check(path, printed, rewrite=rewrite)


@contextmanager
def noting() -> Iterator[set[str]]:
    """The names of the rewrites that change something meanwhile."""
    found: set[str] = set()

    def noted(rule: rules.Rule) -> Callable[[Draft], Draft]:
        def apply(draft: Draft) -> Draft:
            after = rule(draft)
            if after is not draft:
                assert after != draft, f"{rule.__name__} gives an equal draft"
                found.add(rule.__name__)
            return after

        return apply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "RULES", tuple(map(noted, rules.RULES)))
        yield found


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.stem)
def test_a_rewrite_is_applied_where_its_file_says_so(path: Path) -> None:
    applied = {True: 0, False: 0}
    for case in read(path):
        rests = case.options.get("rule") == "rests"
        with noting() as found:
            for part in plan_of(case).parts:
                statement_of(part)
        assert (path.stem in found) is not rests, f"{case}: {path.stem} among {sorted(found)}"
        applied[not rests] += 1
    assert all(applied.values()), "a case where it is applied, and one where it is not"


def test_each_rewrite_has_a_module_and_a_golden_file_of_its_name() -> None:
    assert len(RULES) == len(rules.RULES)
    assert {path.stem for path in RULE_FILES} == RULES.keys()
    folder = Path(dpsql.rewrite.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    assert modules - RULES.keys() == {"__init__", "draft", "rules", "statement"}
    for name, rule in RULES.items():
        module = inspect.getmodule(rule)
        assert module is not None
        assert module.__name__ == f"dpsql.rewrite.{name}"
        said = inspect.getdoc(module) or ""
        assert "Claim:" in said, f"{name} says what it leaves as it is"
        assert "Argument:" in said, f"{name} says why"
