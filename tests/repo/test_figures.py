"""Figures in the documents are those of the code: each sentence below is filled in from constants."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.checks import constant_rows, text_lengths
from dpsql.diagnostics import quote
from dpsql.diagnostics.operation import file, repeats
from dpsql.engines.catalog import pool as catalog
from dpsql.engines.catalog.process import GRACE
from dpsql.ledger import postgres_schema, writer
from dpsql.policy.shares import LEAST_REST, USUAL_REST, shares
from dpsql.release import postprocess
from dpsql.serve import health, throttle
from dpsql.serve.pgwire import variables
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.traffic import MOST_WAITING, Traffic
from dpsql.sql import parameters
from dpsql.sql.bind import select

ROOT = Path(__file__).parents[2]
WORDS = {
    4: "four",
    10: "ten",
    10**6: "a million",
    10**7: "ten million",
    Fraction(1, 2): "half a second",
}
MB = 10**6
TRAFFIC = Traffic()
ROWS = WORDS[catalog.BOUNDS.rows]
SHARES = shares("8GB", "0GB")


def _share(part: int) -> str:
    return {2: "half", 4: "a quarter"}[
        (SHARES.catalog + SHARES.postprocessing + SHARES.pool) // part
    ]


README = (
    (
        f"A catalog query, or one without a table, has {catalog.SECONDS:g} seconds. Its answer has at most"
        f" {catalog.BOUNDS.bytes // MB} MB, {ROWS} rows, {catalog.BOUNDS.value // MB} MB in one value, and"
        f" {catalog.BOUNDS.elements:,} numerics"
    ),
    (
        f"{_share(SHARES.catalog)} is for the processes that answer catalog queries,"
        f" {_share(SHARES.postprocessing)} for post-processing, and {_share(SHARES.pool)} for one pool"
    ),
    f"the rest is {USUAL_REST // 10**9}GB; a policy that leaves less than {LEAST_REST // MB}MB is refused",
    *(
        f"{lane.threads} log-ins may each run one statement; a further statement of one of them begins while"
        f" fewer than {lane.threads - lane.spare} run"
        for lane in (TRAFFIC.data, TRAFFIC.catalog)
    ),
    f"There are {WORDS[len(TRAFFIC.lanes)]} *lanes*",
    f"At most {MOST_WAITING} statements of a log-in wait",
    f"at most {TRAFFIC.newcomers.most} of them, and {TRAFFIC.newcomers.most_of_address} from one address",
    (
        f"waits {throttle.PAIR.first:g} s before it is looked at, then twice as long after each further"
        f" failure, up to {throttle.PAIR.most:g} s"
    ),
    f"{throttle.PAIR.forgotten / 60:g} minutes without a failure",
    f"The same name from another address waits at most {throttle.NAME.most:g} s",
    f"At most {throttle.WAITING} tries of one name from one address wait",
    f"Over HTTP the answer to a wrong token comes up to {throttle.ADDRESS.most:g} s later",
    f"Statements that run have {Limits().drain_seconds:g} seconds",
    f"A reply takes less than {health.SECONDS + 1:g} seconds",
    f"At {file.MOST_BYTES // MB} MB the file is renamed",
    f"{WORDS[file.MOST_FILES]} files are kept",
    f"{repeats.AT_ONCE} are written for each log-in, then {repeats.EACH_MINUTE} a minute",
    f"queries fail after {postgres_schema.SLOWEST_SERVER + writer.PATIENCE:g} seconds",
)
SECURITY = (
    f"({postprocess.PART // MB} MB; {WORDS[postprocess.MOST_PARTS]} at most)",
    (
        f"cut at {quote.PIECE} characters where it is quoted, every error as a whole, and a list of errors at"
        f" {quote.LINES}"
    ),
    (
        f"A statement has {catalog.SECONDS:g} seconds; one that cannot be interrupted ends with its process"
        f" {WORDS[Fraction(GRACE)]} later"
    ),
    (
        f"same address up to {throttle.PAIR.most:g} s, of the name from elsewhere and of other names from the"
        f" address by {throttle.NAME.most:g} s at most; at most {throttle.WAITING} tries"
    ),
)
CHANGELOG = (
    f"make at most {WORDS[constant_rows.MOST_CONSTANT_ROWS]} rows",
    f"{text_lengths.LONGEST.fixed:,} characters and {text_lengths.LONGEST.stored} stored texts each",
    f"{text_lengths.TOGETHER.fixed:,} and {text_lengths.TOGETHER.stored} together",
    f"A SELECT has at most {select.MOST_COLUMNS:,} columns",
    f"A statement has at most {parameters.MOST_PARAMETERS:,} parameters",
    f"at most {MOST_WAITING} wait, then 53300",
    (
        f"{catalog.SECONDS:g} seconds each. An answer has at most {catalog.BOUNDS.bytes // MB} MB, {ROWS} rows,"
        f" {catalog.BOUNDS.value // MB} MB in a value and {catalog.BOUNDS.elements:,} members of lists"
    ),
    f"Settings of a session have at most {variables.LONGEST:,} characters together",
    f"up to {throttle.PAIR.most:g} s, from elsewhere by {throttle.NAME.most:g} s at most",
    f"leaves less than {LEAST_REST // MB}MB beside its engine",
    f"fails queries after {postgres_schema.SLOWEST_SERVER + writer.PATIENCE:g} seconds",
)


def _says(document: str, sentence: str) -> bool:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", sentence) in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("sentence", README)
def test_the_readme_has_the_figures_of_the_code(sentence: str) -> None:
    assert _says("README.md", sentence)


@pytest.mark.parametrize("sentence", SECURITY)
def test_what_is_guaranteed_has_the_figures_of_the_code(sentence: str) -> None:
    assert _says("SECURITY.md", sentence)


@pytest.mark.parametrize("sentence", CHANGELOG)
def test_the_changes_have_the_figures_of_the_code(sentence: str) -> None:
    assert _says("CHANGELOG.md", sentence)


def test_another_figure_would_be_noticed() -> None:
    for document, sentences in (
        ("README.md", README),
        ("SECURITY.md", SECURITY),
        ("CHANGELOG.md", CHANGELOG),
    ):
        for sentence in sentences:
            if re.search(r"\d", sentence):
                assert not _says(document, re.sub(r"\d+", lambda n: f"{n[0]}1", sentence))
