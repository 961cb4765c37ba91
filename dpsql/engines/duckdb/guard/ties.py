"""Windows over one unit's rows, whose results must not show the order of equal rows.

An engine reads rows in an order that depends on other units' rows, and on threads. So if a window
can tell equal rows apart, its keys must have all expressions that its SELECT reads of a row, with
the signs of doubles. Or the rows are groups, and its keys have all that they are grouped by. An
expression over the unit's key alone has one value for all rows of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.engines.duckdb.guard.facts import Unsafe
from dpsql.engines.duckdb.guard.parts import Node, arguments
from dpsql.engines.duckdb.guard.rows import Rows
from dpsql.engines.duckdb.guard.sums import AGGREGATES
from dpsql.engines.duckdb.guard.terms import PRIVATE, Terms

_OF_EQUALS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Functions that give equal rows the same number."""
_CHOOSING = frozenset({"first_value", "last_value"})


def refuse_ties(select_list: list[Node], rows: Rows, terms: Terms) -> None:
    """Refuse windows over rows of units that can tell apart rows with equal keys."""
    if rows.state != PRIVATE:
        return
    windows = [w for item in select_list for w in _windows(item)]
    telling = [w for w in windows if _tells(w)]
    for window in telling:
        if any(_order(other) != _order(window) for other in telling):
            raise Unsafe(
                "windows of several orders in one SELECT, which may take turns with equal rows"
            )
        keys = _Keys.of(window, terms)
        if not keys.group(rows):
            for item in select_list:
                keys.hold(item)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The expressions that are equal in all rows that a window takes for equal."""

    nodes: list[Node]
    unit: frozenset[int]
    terms: Terms

    @classmethod
    def of(cls, window: Node, terms: Terms) -> _Keys:
        within = window["partitions"]
        chosen = window["function_name"] in _CHOOSING and not _by_rows(window)
        orders = (chosen and window["arg_orders"]) or window["orders"]
        unit: frozenset[int] = frozenset().union(*(terms.fact(k).unit for k in within))
        return cls([_bare(n) for n in (*within, *(o["expression"] for o in orders))], unit, terms)

    def group(self, rows: Rows) -> bool:
        """Whether no two rows are equal, since the keys have all columns they are grouped by."""
        names = {k["column_names"][-1] for k in self.nodes if k["class"] == "COLUMN_REF"}
        return rows.grouped is not None and rows.grouped <= names

    def hold(self, item: Node) -> None:
        """Refuse an expression that may differ between rows with equal keys."""
        node = _bare(item)
        if node["class"] == "STAR":
            raise Unsafe("all columns beside a window that tells equal rows apart")
        if node in self.nodes:
            sign = any(
                k.get("function_name") == "signbit" and _bare(arguments(k)[0]) == node
                for k in self.nodes
            )
            if not (sign or self.terms.fact(node).identical):
                raise Unsafe(
                    "a window that takes both zeros for equal, beside what tells them apart"
                )
            return
        if node["class"] == "COLUMN_REF":
            unit = self.terms.fact(node).unit
            if not unit or not unit <= self.unit:
                name = ".".join(node["column_names"])
                raise Unsafe(f"a window that tells rows apart, of which {name} is not a key")
        for part in _parts(node):
            self.hold(part)


def _tells(window: Node) -> bool:
    """Whether a window can tell apart rows with equal keys."""
    name = window["function_name"]
    return name not in _OF_EQUALS and (name not in AGGREGATES or _by_rows(window))


def _by_rows(window: Node) -> bool:
    """Whether a frame counts rows, so that it may contain some of several equal rows."""
    return any(window[end].endswith("_ROWS") for end in ("start", "end"))


def _order(window: Node) -> tuple[object, object]:
    return window["partitions"], window["orders"]


def _bare(node: Node) -> Node:
    return {**node, "alias": ""}


def _windows(node: object) -> Iterator[Node]:
    if isinstance(node, dict):
        if node.get("class") == "WINDOW":
            yield node
        for child in node.values():
            yield from _windows(child)
    elif isinstance(node, list):
        for child in node:
            yield from _windows(child)


def _parts(node: object) -> Iterator[Node]:
    """The expressions directly below."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        if isinstance(child, dict) and "class" in child:
            yield child
        else:
            yield from _parts(child)
