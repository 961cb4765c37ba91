"""Parts of the engine's syntax tree, and functions on them that need no knowledge of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Node = dict[str, Any]
"""A part of the engine's syntax tree."""
_HASH = 64
"""The bits of a hash."""
_MARKS = 6
"""The bits of a number that selects one of 64 bits."""


def arguments(node: Node) -> list[Node]:
    """The arguments of a function."""
    return [a.get("expression", a) for a in node["arguments"]]


def find_ranges(condition: Node) -> Iterator[tuple[Node, Node, Node]]:
    """The values that a condition puts between two constants, with the low and the high constant.

    Equal parts of a tree are equal expressions, because the tree has no positions in the text.
    """
    lows: list[tuple[Node, Node]] = []
    highs: list[tuple[Node, Node]] = []
    for part in conjuncts(condition):
        if part["class"] == "COMPARISON" and constant(part["right"]):
            if part["type"] in ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"):
                lows.append((part["left"], part["right"]))
            if part["type"] in ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"):
                highs.append((part["left"], part["right"]))
    for value, low in lows:
        yield from ((value, low, high) for other, high in highs if other == value)


def above(condition: Node) -> Iterator[tuple[Node, int, None]]:
    """The lower bound of a whole number where a condition ``<= constant`` on it does not hold."""
    text = condition.get("right", {}).get("literal", {"kind": ""})
    if condition["type"] == "COMPARE_LESSTHANOREQUALTO" and text["kind"] == "INTEGER":
        yield condition["left"], int(text["text"]) + 1, None


def unequal(node: Node) -> bool:
    """Whether a value is ``nullif(x, 0)``, which is never zero."""
    if node.get("function_name") != "nullif":
        return False
    return bool(arguments(node)[1].get("literal", {}).get("text") == "0")


def between_zones(node: Node) -> Node | None:
    """The timestamp that two calls of ``timezone`` convert between two named zones, or None.

    One call alone gives an instant, which as a time depends on a setting of the session.
    """
    for _ in range(2):
        plain = node.get("function_name") == "timezone" and len(node["arguments"]) == 2
        if not plain or node["distinct"] or node["filter"] or node["schema"]:
            return None
        zone, node = arguments(node)
        if zone.get("literal", {}).get("kind") != "STRING":
            return None
    return node


def shown_number(node: Node) -> Node | None:
    """The number that a cast writes as text, with fixed decimals or as a 32-bit float; or None.

    Decimals are allowed in no other place, because arithmetic of decimals fails if it overflows.
    """
    inner = node["child"]
    if inner["class"] != "CAST" or not (inner["try_cast"] and node["try_cast"]):
        return None
    held, sizes = inner["type_expr"]["type_name"], inner["type_expr"]["children"]
    whole = [s.get("literal", {}).get("kind") == "INTEGER" for s in sizes]
    known = (held == "DECIMAL" and whole == [True, True]) or (held == "FLOAT" and not sizes)
    text = node["type_expr"]["type_name"] == "VARCHAR" and not node["type_expr"]["children"]
    return inner["child"] if known and text else None


def constant(node: Node) -> bool:
    """Whether a value is a constant of the statement, or passed with it."""
    if node["class"] == "CAST":
        return constant(node["child"])
    if node["class"] == "FUNCTION" and node["function_name"] in ("-", "+"):
        return all(constant(a) for a in arguments(node))
    return node["class"] in ("CONSTANT", "PARAMETER")


def canonical(node: Node) -> Node | None:
    """The value ``x`` of an expression that is the canonical form of ``x`` as a double, else None.

    The form is ``CASE WHEN isnan(x) THEN CAST('NaN' AS DOUBLE) ELSE x + 0.0e0 END``. It makes minus
    zero zero, and has one NaN. It changes no other value, nor NULL.
    """
    if len(node["case_checks"]) != 1 or not not_a_number(node["case_checks"][0]["then_expr"]):
        return None
    test, other = node["case_checks"][0]["when_expr"], node["else_expr"]
    if test.get("function_name") != "isnan" or other.get("function_name") != "+":
        return None
    (value,), added = arguments(test), arguments(other)
    zero = added[-1].get("literal", {})
    plus_zero = zero.get("kind") == "NUMERIC" and zero["text"] == "0.0e0"
    return value if len(added) == 2 and added[0] == value and plus_zero else None


def not_a_number(node: Node) -> bool:
    """Whether an expression is the one NaN of the canonical form."""
    if node["class"] != "CAST" or node["type_expr"]["type_name"] != "DOUBLE":
        return False
    text = {"kind": "STRING", "text": "NaN"}
    return node["child"].get("literal") == text and not node["try_cast"]


def conjuncts(node: Node) -> Iterator[Node]:
    """The parts of a condition, all of which must hold."""
    if node["class"] == "CONJUNCTION" and node["type"] == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from conjuncts(child)
    else:
        yield node


def is_plain_star(star: Node) -> bool:
    """Whether a ``*`` stands for all columns without changes."""
    changes = ("relation_name", "exclude_list", "replace_list", "columns", "expr",
               "qualified_exclude_list", "rename_list")  # fmt: skip
    return not any(star[change] for change in changes)


def find_column_names(node: object) -> Iterator[list[str]]:
    """The names of every column in an expression."""
    if isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"]
        for child in node.values():
            yield from find_column_names(child)
    elif isinstance(node, list):
        for child in node:
            yield from find_column_names(child)


def equal(node: Node) -> Iterator[tuple[Node, Node]]:
    """The two sides of each equality that must hold, if both are columns or casts of columns."""
    for part in conjuncts(node):
        if part["type"] == "COMPARE_EQUAL" and name_of(part["left"]) and name_of(part["right"]):
            yield part["left"], part["right"]


def name_of(node: Node) -> list[str]:
    """The name of a column, also below a cast; empty for other expressions."""
    inner = node["child"] if node["class"] == "CAST" else node
    names: list[str] = inner.get("column_names", [])
    return names


def place_bits(args: list[Node]) -> int | None:
    """The bits of a hash that a shift by a constant leaves; None for other expressions."""
    value, by = args
    if value.get("function_name") != "hash" or by.get("literal", {}).get("kind") != "INTEGER":
        return None
    left = _HASH - int(by["literal"]["text"])
    return left if 0 < left < _HASH else None


def is_marked_bit(args: list[Node]) -> bool:
    """Whether a 128-bit one is shifted by the first bits of a hash."""
    one, by = args
    wide = one["class"] == "CAST" and one["type_expr"]["type_name"] == "HUGEINT"
    if not wide or one["child"].get("literal", {}).get("text") != "1":
        return False
    left = place_bits(arguments(by)) if by.get("function_name") == ">>" else None
    return left is not None and left <= _MARKS


def is_microsecond_part(name: str, args: list[Node]) -> bool:
    """Whether a call extracts microseconds, the one part of a time that never fails."""
    return name == "date_part" and args[0].get("literal", {}).get("text") == "microsecond"
