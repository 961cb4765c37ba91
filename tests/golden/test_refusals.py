"""What a refusal says: golden files, and suggestions that are run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from datadriven import Case, check, read
from shop import ANALYST, PURE, refusal

import dpsql
from dpsql.checks import RULES
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.refusal import Refused
from dpsql.diagnostics.render import is_sql, refusal_text

FOLDER = Path(__file__).parent.parent.parent / "fixtures" / "refusals"
FILES = sorted(FOLDER.glob("*.test"))
REQUESTS = {
    "analyst": ANALYST,
    "pure": PURE,
    "without_mechanism": replace(ANALYST, mechanism="laplace", allowed=("gaussian",)),
}


def refused_for(case: Case, text: str) -> Refused | None:
    options = case.options
    parameters = [int(p) for p in options.get("parameters", "").split(",") if p]
    policy = options.get("policy", "policies/shop.yaml")
    request = REQUESTS[options.get("request", "analyst")]
    dialect = options.get("dialect", "postgres")
    return refusal(text, parameters, policy=policy, request=request, dialect=dialect)


def run(case: Case) -> str:
    """The refusal, and whether its suggestion is accepted, which mends all that is refused."""
    verb, code = case.words
    assert verb == "refuse", case
    refused = refused_for(case, case.text)
    assert refused is not None, f"{case}: answered"
    assert refused.code == code, f"{case}: {refused.code}"
    printed, instead = [refusal_text(refused)], refused.instead
    if is_sql(instead) and not instead.startswith("SET "):
        again = refused_for(case, instead)
        assert again is None, f"{case}: the suggestion is refused\n{instead}\n{again}"
        printed.append("(the suggestion is answered)")
    return "\n".join(printed)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_refusals_say_what_to_do(path: Path, rewrite: bool) -> None:
    check(path, run, rewrite=rewrite)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_file_is_named_for_its_code(path: Path) -> None:
    number = path.stem.split("_")[0]
    assert number in CODES
    assert {case.words[1] for case in read(path)} == {number}


def raised_by(*folders: str) -> set[str]:
    root = Path(dpsql.__file__).parent
    texts = [file.read_text() for folder in folders for file in (root / folder).rglob("*.py")]
    return {code for text in texts for code in re.findall(r'"(DP\d{3})"', text)}


def test_every_code_that_is_raised_has_a_file() -> None:
    raised = raised_by("sql", "checks", "plan")
    assert raised - {path.stem.split("_")[0] for path in FILES} == set()


@pytest.mark.parametrize("name", RULES)
def test_a_rule_tells_what_and_why_and_its_example_is_refused(name: str) -> None:
    told = re.sub(r"\s+", " ", _words_of(name))
    code = re.match(r"DP\d{3}", told)
    assert code is not None
    for heading in ("What: ", "Why: ", "Example: ", "Instead: "):
        assert heading in told
    example = re.search(r"Example: ``(.+?)``", told)
    assert example is not None
    refused = refusal(example[1])
    assert refused is not None
    assert code[0] in {r.code for r in refused.refusals}


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_suggests_is_answered(name: str) -> None:
    instead = re.search(r"Instead: ``(.+?)``", re.sub(r"\s+", " ", _words_of(name)))
    assert instead is not None
    if instead[1].startswith("SELECT"):
        assert refusal(instead[1]) is None


def _words_of(name: str) -> str:
    module = __import__(f"dpsql.checks.{name}", fromlist=["check"])
    return str(module.__doc__)
