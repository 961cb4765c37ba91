"""Good and bad policies: what the loader says, and that the JSON schema agrees."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.load import load
from dpsql.policy.schema import main, schema

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures" / "policies"
GOOD = sorted(FIXTURES.glob("*.yaml"))
BAD = sorted((FIXTURES / "bad").glob("*.yaml"))
VALIDATOR = jsonschema.Draft202012Validator(schema())


class Core(yaml.SafeLoader):
    """YAML as an editor reads it: version 1.2, in which dates and `yes` are text."""


Core.yaml_implicit_resolvers = {}
for tag, pattern, letters in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    Core.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [*letters, ""]
    )


def accepted(path: Path) -> bool:
    document: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=Core)
    return bool(VALIDATOR.is_valid(document))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_policies_load_and_fit_the_schema(path: Path) -> None:
    assert load(path).tables
    assert accepted(path)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_policies_are_refused_as_their_first_lines_say(path: Path) -> None:
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    expected = []
    for line in rest:
        if not line.startswith("# "):
            break
        expected.append(f"{path}:{line[2:]}")
    with pytest.raises(PolicyError) as caught:
        load(path)
    assert list(caught.value.problems) == expected
    level = first.removeprefix("# ")
    assert level in ("text", "shape", "meaning")
    if level != "text":
        assert accepted(path) is (level == "meaning")


def test_there_are_enough_bad_policies() -> None:
    assert len(BAD) >= 100


def test_the_schema_file_is_fresh() -> None:
    VALIDATOR.check_schema(schema())
    fresh = (ROOT / "grammar" / "policy.schema.json").read_text(encoding="utf-8")
    assert json.loads(fresh) == schema()
    assert fresh == main([]) + "\n"
