"""The keys of a policy as a JSON schema for editors, and as a Markdown table for people.

python -m dpsql.policy.schema > grammar/policy.schema.json
python -m dpsql.policy.schema --markdown
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from dpsql.policy import key_shapes, keys
from dpsql.policy.scalars import DECIMAL, NUMBER, WHOLE
from dpsql.policy.types import POLICY_TYPES

_NAME = {"type": "string", "pattern": r"\S"}


def schema() -> dict[str, object]:
    """The JSON schema (draft 2020-12) of a policy file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpsql policy",
        **_schema(keys.POLICY),
    }


def _schema(shape: key_shapes.Shape) -> dict[str, object]:
    match shape:
        case key_shapes.Record():
            return _record(shape)
        case key_shapes.Named():
            return {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": r"\S"},
                "additionalProperties": _schema(shape.item),
            }
        case key_shapes.Listed():
            return {"type": "array", "minItems": 1, "items": _schema(shape.item)}
        case key_shapes.Names():
            return _names(shape)
        case key_shapes.Values():
            plain = {"type": ["string", "number", "boolean"]}
            exact = {"maxItems": shape.length} if shape.length else {}
            return {"type": "array", "minItems": shape.length or 1, **exact, "items": plain}
        case _:
            return _scalar(shape)


def _record(shape: key_shapes.Record) -> dict[str, object]:
    required = [key.name for key in shape.keys if key.required]
    return {
        "type": "object",
        "properties": {
            key.name: {**_schema(key.shape), "description": _about(key)} for key in shape.keys
        },
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _names(shape: key_shapes.Names) -> dict[str, object]:
    item: dict[str, object] = {"enum": list(shape.words)} if shape.words else dict(_NAME)
    several = {"type": "array", "minItems": 1, "uniqueItems": True, "items": item}
    return {"anyOf": [item, several]} if shape.single else several


def _scalar(shape: key_shapes.Shape) -> dict[str, object]:
    match shape:
        case key_shapes.Choice():
            return {"enum": list(shape.words)}
        case key_shapes.ColumnType():
            return {"anyOf": [{"enum": list(POLICY_TYPES)}, {"pattern": f"^{DECIMAL}$"}]}
        case key_shapes.Flag():
            return {"enum": [True, False, "true", "false"]}
        case key_shapes.Whole():
            digits = {"type": ["integer", "string"], "pattern": f"^({WHOLE})$"}
            return {**digits, "minimum": shape.low, "maximum": shape.high}
        case key_shapes.Number():
            low = "exclusiveMinimum" if shape.open_low else "minimum"
            high = "exclusiveMaximum" if shape.open_high else "maximum"
            digits = {"type": ["number", "string"], "pattern": f"^({NUMBER})$"}
            return {**digits, low: int(shape.low), high: int(shape.high)}
        case key_shapes.Text() if shape.pattern:
            return {"type": "string", "pattern": f"^({shape.pattern})$"}
        case key_shapes.Text():
            return {"type": ["string", "number", "boolean"], "pattern": r"\S"}
        case _:
            return dict(_NAME)


def _about(key: key_shapes.Key) -> str:
    return f"{key.about} (default: {key.default})" if key.default else key.about


def markdown() -> str:
    """Every key as a row of a Markdown table."""
    rows = [
        f"| `{path}` | {_holds(key.shape)} | {_default(key)} | {key.about} |"
        for path, key in _walk(keys.POLICY, "")
    ]
    head = ["| key | holds | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _walk(record: key_shapes.Record, above: str) -> Iterator[tuple[str, key_shapes.Key]]:
    for key in record.keys:
        path = above + key.name
        yield path, key
        match key.shape:
            case key_shapes.Record() as inner:
                yield from _walk(inner, f"{path}.")
            case key_shapes.Named(item=key_shapes.Record() as inner, word=word):
                yield from _walk(inner, f"{path}.<{word.removesuffix('s')}>.")
            case key_shapes.Listed() as listed:
                yield from _walk(listed.item, f"{path}[].")
            case _:
                pass


def _default(key: key_shapes.Key) -> str:
    return "required" if key.required else key.default


def _holds(shape: key_shapes.Shape) -> str:
    match shape:
        case key_shapes.Choice():
            return ", ".join(f"`{word}`" for word in shape.words)
        case key_shapes.Names() if shape.words:
            return f"list of {', '.join(f'`{word}`' for word in shape.words)}"
        case key_shapes.Names():
            return "name or list of names" if shape.single else "list of names"
        case key_shapes.Values():
            return f"list of {shape.length} values" if shape.length else "list of values"
        case key_shapes.Number():
            return _interval(shape)
        case key_shapes.Whole():
            return f"whole number from {shape.low}"
        case key_shapes.Record():
            return "keys below"
        case key_shapes.Listed():
            return "list of keys below"
        case key_shapes.Named():
            return f"{shape.word} by name"
        case _:
            return {"Text": "text", "ColumnType": "type", "Flag": "`true` or `false`"}.get(
                type(shape).__name__, "name"
            )


def _interval(shape: key_shapes.Number) -> str:
    low = "above" if shape.open_low else "from"
    high = "below" if shape.open_high else "to"
    return f"number {low} {shape.low} {high} {shape.high}"


def main(arguments: list[str]) -> str:
    """The output for the arguments of the command line."""
    return markdown() if "--markdown" in arguments else json.dumps(schema(), indent=2)


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]) + "\n")
