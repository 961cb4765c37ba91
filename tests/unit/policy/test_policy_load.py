"""Reading a policy file: files, values, defaults, warnings, version."""

import itertools
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from policy_text import AGE, FIXTURES, SMALL, problems, small

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy import document
from dpsql.policy.load import load, parse
from dpsql.policy.model import Allowance, QueryLimit, QueryShare
from dpsql.policy.types import Scalar

KEY = "customer_id: {type: bigint}"


def said(path: Path) -> str:
    with pytest.raises(PolicyError) as caught:
        load(path)
    (line,) = caught.value.problems
    return line.removeprefix(f"{path}:")


def test_files_that_are_no_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.yaml"
    assert said(path) == "1:1: no such file; `dpsql init` drafts a policy"
    path.mkdir()
    assert said(path).startswith("1:1: the file cannot be read: ")
    path.rmdir()
    for content, start in (
        (b"", "1:1: the file is empty"),
        (b"# nothing\n\n", "1:1: the file is empty"),
        (b"a: 1\nb: \xff\n", "2:4: the file is not UTF-8"),
        ("a: é".encode("utf-16"), "1:1: the file is not UTF-8"),
        (b"a: 1\nb: \x07\n", "2:4: a character that YAML does not allow"),
        (b"%YAML 3.0\n---\na: 1\n", "1:1: not YAML: "),
        (b"a: 'b\n", "2:1: not YAML: "),
    ):
        path.write_bytes(content)
        assert said(path).startswith(start)
    monkeypatch.setattr(document, "MAX_BYTES", 3)
    path.write_bytes(b"a: 1")
    assert said(path) == "1:1: the file is larger than 3 bytes; shorten it"


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load(path).version == small().version


def test_paths_are_beside_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.policy.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    policy = load("shop.policy.yaml")
    assert policy.path == tmp_path / "shop.policy.yaml"
    assert policy.source.path == tmp_path / "shop.duckdb"
    assert policy.ledger == tmp_path / "shop.policy.ledger.db"
    assert policy.source.engine == "duckdb"
    named = small(("roles:", "ledger: {path: ../spent.db}\nroles:"))
    assert named.ledger == Path("/spent.db")
    assert policy.places["customers", "age"] == "shop.policy.yaml:9:7"
    assert policy.places["countries",] == "shop.policy.yaml:17:3"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("type: integer, range: [-1, +2]", (-1, 2)),
        ("type: double, range: [1e-5, .5]", (Fraction(1, 100000), Fraction(1, 2))),
        ("type: real, range: [0.1, 1E2]", (Fraction(1, 10), Fraction(100))),
        ('type: "decimal(4, 1)", range: ["0", "9.9"]', (Fraction(0), Fraction(99, 10))),
        ("type: date, range: [2024-01-01, 2024-02-29]", (date(2024, 1, 1), date(2024, 2, 29))),
        (
            "type: timestamp, range: [2024-01-01, 2024-01-01T23:59:59.5]",
            (datetime.fromisoformat("2024-01-01"), datetime.fromisoformat("2024-01-01T23:59:59.5")),
        ),
        (
            "type: timestamp, range: [2024-01-01 10:00, 2024-01-01 10:00]",
            (
                datetime.fromisoformat("2024-01-01T10:00"),
                datetime.fromisoformat("2024-01-01T10:00"),
            ),
        ),
    ],
)
def test_ranges_are_read_by_the_type(written: str, value: tuple[Scalar, Scalar]) -> None:
    column = small((AGE, f"age: {{{written}}}")).tables["customers"].columns["age"]
    assert column.range == value
    assert column.range is not None
    assert [type(bound) for bound in column.range] == [type(bound) for bound in value]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (
            'type: text, values: [no, on, 010, 1e3, 2024-01-01, "null", 12:30]',
            ("no", "on", "010", "1e3", "2024-01-01", "null", "12:30"),
        ),
        ("type: boolean, values: [true, false]", (True, False)),
        ('type: integer, values: [1, "2"]', (1, 2)),
        (
            "type: uuid, values: [123E4567-e89b-12d3-a456-426614174000]",
            ("123e4567-e89b-12d3-a456-426614174000",),
        ),
        ("type: integer, range: [1, 5], values: [5, 1]", (5, 1)),
    ],
)
def test_values_are_read_by_the_type(written: str, values: tuple[Scalar, ...]) -> None:
    assert small((AGE, f"age: {{{written}}}")).tables["customers"].columns["age"].values == values


def test_the_data_version_is_its_text() -> None:
    for written, read in (("2026-11-01", "2026-11-01"), ("010", "010"), ('"no"', "no")):
        assert small(("data_version: 1", f"data_version: {written}")).data_version == read


def test_budgets_have_defaults() -> None:
    policy = small()
    role = policy.roles["analyst"]
    delta = Fraction(1, 10**6)
    assert policy.dataset == Allowance(Fraction(4), delta, "zcdp")
    assert role.allowance == role.session == policy.dataset
    assert role.query == QueryLimit(Fraction(2, 5), delta / 100)
    assert (role.tables, role.password, role.max_groups_per_unit) == (None, None, 3)
    pure = small((", delta: 1e-6", "")).roles["analyst"]
    assert (pure.allowance.composition, pure.query.delta) == ("basic", 0)
    basic = small(("delta: 1e-6", "delta: 1e-6, composition: basic")).roles["analyst"]
    assert basic.session.composition == "basic"


def test_roles_and_limits_say_what_they_say() -> None:
    policy = load(FIXTURES / "far.yaml")
    analyst, strict = policy.roles["analyst"], policy.roles["strict"]
    assert analyst.tables == {"lineitem", "orders", "part", "region"}
    assert (policy.dataset.per, analyst.allowance.per, analyst.session.per) == (
        "year",
        "month",
        "day",
    )
    assert strict.mechanisms == ("laplace", "geometric")
    assert policy.limits.max_cells == 20_000
    assert policy.limits.memory == "2GB"
    assert (policy.limits.threads, policy.limits.timeout_seconds) == (2, 60)


def test_what_protects_hardly_anyone_is_warned_about() -> None:
    risky = (
        ("epsilon: 4, delta: 1e-6", "epsilon: 100, delta: 0.001"),
        ("{analyst: {}}", "{analyst: {password: secret}, safe: {password: SCRAM-SHA-256$a}}"),
    )
    assert [line.split(":", 3)[1:] for line in small(*risky).warnings] == [
        ["18", "31", " epsilon of accounts.dataset is 100: this protects hardly anyone"],
        ["18", "43", " delta of accounts.dataset is 0.001: this protects hardly anyone"],
        [
            "19",
            "29",
            (
                " the password of role analyst is plain text; outside trials write its "
                "SCRAM-SHA-256 verifier"
            ),
        ],
    ]
    assert small().warnings == ()


def test_a_limit_of_rows_where_units_live_is_warned_about() -> None:
    """Whether it is a mistake about the unit is seen in the data (``dpsql check``)."""
    policy = small(("  customers:\n", "  customers:\n    max_rows_per_unit: 60\n"))
    (line,) = policy.warnings
    assert "has one row for each customer" in line
    assert "write `units: {customer: {key: customer_id}}`, without `table`" in line
    assert policy.tables["customers"].max_rows_per_unit == 1


def test_descriptions_are_kept_and_mean_nothing() -> None:
    told = small(
        (AGE, AGE[:-1] + ", description: in years}"),
        ("    max_rows", "    description: what was bought\n    max_rows"),
    )
    assert told.tables["customers"].columns["age"].description == "in years"
    assert told.tables["orders"].description == "what was bought"
    assert told.version == small().version


def test_the_version_is_the_meaning() -> None:
    same = [
        small(),
        small(("{epsilon: 4, delta: 1e-6}", "{delta: 0.000001, epsilon: 4.0}")),
        small(("key: customer_id}", 'key: ["customer_id"]}')),
        small(("path: shop.duckdb", "path: elsewhere.duckdb")),
        small(("{analyst: {}}", "{analyst: {password: a}}")),
        small(("roles:", "limits: {threads: 2}\nledger: {path: x.db}\nroles:")),
        small((f"{KEY}\n      {AGE}", f"{AGE}\n      {KEY}")),
    ]
    other = [
        small(),
        small(("data_version: 1", "data_version: 2")),
        small(("epsilon: 4,", "epsilon: 5,")),
        small(("[18, 100]", "[18, 99]")),
        small((AGE, "age: {type: double, range: [18, 100]}")),
        small((AGE, "age: {type: date, range: [2024-01-01, 2024-01-02]}")),
        small((AGE, "age: {type: integer, values: [1]}")),
        small((AGE, "age: {type: text, values: ['1']}")),
        small((AGE, "age: {type: boolean, values: [true]}")),
        small(("rows_per_unit: 50", "rows_per_unit: 51")),
        small(("{analyst: {}}", "{analyst: {tables: [orders]}}")),
        small(("{analyst: {}}", "{analyst: {mechanisms: [gaussian]}}")),
        small(("key: customer_id}", "key: customer_id, group_size: 2}")),
        small(("amount: {type: double}", "amount: {type: double, nullable: true}")),
    ]
    assert len({policy.version for policy in same}) == 1
    for one, two in itertools.combinations(other, 2):
        assert one.version != two.version


def test_mechanisms_have_no_order() -> None:
    one = small(("{analyst: {}}", "{analyst: {mechanisms: [gaussian, laplace]}}"))
    two = small(("{analyst: {}}", "{analyst: {mechanisms: [laplace, gaussian]}}"))
    assert one.version == two.version
    assert replace(one, path=two.path) == two


def test_nothing_follows_from_what_was_reported() -> None:
    """One mistake, one problem."""
    tables = SMALL[SMALL.index("tables:") : SMALL.index("accounts:")]
    for changes in (
        [(tables, "tables: none\n")],
        [("units: {customer: {table: customers, key: customer_id}}", "units: none")],
        [("key: customer_id}}", "key: {}}}")],
        [("table: customers,", "table: [],")],
        [("{table: customers, key: customer_id}", "none")],
        [("{dataset: {epsilon: 4, delta: 1e-6}}", "{dataset: 4}")],
        [("{dataset: {epsilon: 4, delta: 1e-6}}", "none")],
        [("max_rows_per_unit: 50", "max_rows_per_unit: many")],
        [("max_rows_per_unit: 50", "max_rows_per_units: 50")],
        [("amount: {type: double}", "amount: double")],
        [("  countries: {public: true, columns: {country: {type: text}}}", "  countries: public")],
        [
            ("public: true,", "public: maybe,"),
            (AGE, "age: {type: text, values_from: countries.country}"),
        ],
        [
            ("columns: {country: {type: text}}", "columns: {country: text}"),
            (AGE, "age: {type: text, values_from: countries.country}"),
        ],
        [("customer_id: {type: bigint}\n      age", "customer_id: {type: int}\n      age")],
        [("references: customers}]", "references: [customers]}]")],
    ):
        assert len(problems(*changes)) == 1, changes


def test_a_policy_without_private_tables() -> None:
    policy = parse(
        "source: {path: x}\ndata_version: 1\ntables: {t: {public: true}}\n"
        "accounts: {dataset: {epsilon: 1}}\nroles: {a: {}}\n",
        Path("/p.yaml"),
        "p.yaml",
    )
    assert policy.units == {}
    assert policy.tables["t"].public
    assert policy.tables["t"].columns == {}


@pytest.mark.parametrize(
    "password",
    ["*zanzibar", "&zanzibar x", "!zanzibar x", "[zanzibar]", "{zanzibar: 1}", "'zanzibar"],
)
def test_no_problem_repeats_a_password(password: str) -> None:
    """Problems of a policy that is reloaded are in the operator's log."""
    with pytest.raises(PolicyError) as caught:
        small(("roles: {analyst: {}}", f"roles:\n  analyst:\n    password: {password}\n"))
    assert "zanzibar" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("1%", Fraction(1, 100)),
        ("2.5 %", Fraction(1, 40)),
        ("0.05%", Fraction(1, 2000)),
        ("100%", Fraction(1)),
        ("'12%'", Fraction(3, 25)),
    ],
)
def test_a_query_may_cost_a_share(written: str, share: Fraction) -> None:
    """Its delta is that share of the session's, unless it is written."""
    role = small(("analyst: {}", f"analyst: {{query: {{share: {written}}}}}")).roles["analyst"]
    assert role.query == QueryShare(share, share / 10**6)
    written = f"analyst: {{query: {{share: {written}, delta: 1e-9}}}}"
    assert small(("analyst: {}", written)).roles["analyst"].query.delta == Fraction(1, 10**9)


@pytest.mark.parametrize("written", ["0%", "101%", "-1%", "0.01", "1", "%", "1e-2%", "100.1%"])
def test_a_share_is_a_percentage(written: str) -> None:
    [said] = problems(("analyst: {}", f"analyst: {{query: {{share: '{written}'}}}}"))
    assert said.endswith(f'cannot be "{written}"; write it like 1%')
