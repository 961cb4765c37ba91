"""Expressions of a statement: their kinds, their bounds, and whether they can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dpsql.effort import step
from dpsql.engines.duckdb.guard.casts import cast, is_total_cast, read_constant
from dpsql.engines.duckdb.guard.facts import (
    ABOVE,
    BELOW,
    DATE,
    DOUBLE,
    LIST,
    NULL,
    NUMBERS,
    SPAN,
    STORED,
    TEXT,
    TIME,
    TRUTH,
    WHOLE,
    End,
    Fact,
    Unsafe,
    alike,
    fact_of_size,
    kind_of,
    merge_facts,
    plain,
)
from dpsql.engines.duckdb.guard.parts import (
    Node,
    above,
    arguments,
    between_zones,
    canonical,
    constant,
    find_ranges,
    is_marked_bit,
    is_microsecond_part,
    not_a_number,
    place_bits,
    shown_number,
    unequal,
)
from dpsql.engines.duckdb.guard.sizes import OWN, ROWS, arithmetic, extreme
from dpsql.engines.duckdb.guard.sums import (
    AGGREGATES,
    NOTHING,
    OF_PUBLIC,
    again,
    aggregate_fact,
    linear,
)

PUBLIC, PRIVATE, MEASURED = "public", "private", "measured"
TOTAL: dict[str, str] = {
    "abs": "", "ceil": "", "floor": "", "trunc": "", "round": "", "sign": WHOLE, "sqrt": DOUBLE,
    "cbrt": DOUBLE, "exp": DOUBLE, "ln": DOUBLE, "log": DOUBLE, "log10": DOUBLE, "pow": DOUBLE, "power": DOUBLE,
    "least": "", "greatest": "", "nullif": "", "isnan": TRUTH, "hash": WHOLE, "lower": TEXT,
    "upper": TEXT, "trim": TEXT, "ltrim": TEXT, "rtrim": TEXT, "length": WHOLE, "substring": TEXT,
    "left": TEXT, "right": TEXT, "||": TEXT, "strpos": WHOLE, "replace": TEXT, "chr": TEXT,
    "starts_with": TRUTH, "~~": TRUTH, "~~*": TRUTH, "!~~": TRUTH, "!~~*": TRUTH,
    "like_escape": TRUTH, "ilike_escape": TRUTH, "not_like_escape": TRUTH,
    "not_ilike_escape": TRUTH, "regexp_replace": TEXT, "epoch_us": WHOLE, "struct_pack": LIST, "row": "record",
    "list_value": "array", "list_sort": "array", "bit_count": WHOLE, "signbit": TRUTH,
}  # fmt: skip
"""Functions that never fail and only read their arguments: their kinds (empty: the first's)."""
TRIED: dict[str, str] = {
    "date_trunc": TIME, "date_part": WHOLE, "make_timestamp": TIME, "strftime": TEXT,
}  # fmt: skip
"""Functions that may fail, and must be inside TRY."""
_PATTERNS = ("~~", "~~*", "!~~", "!~~*", "regexp_replace", "like_escape", "ilike_escape")
_PLACED = {"substring": 1, "left": 1, "right": 1, "round": 1, "chr": 0}
"""Functions that fail for some positions and lengths, by the first argument to be constant."""
_WINDOWS = {
    "row_number": WHOLE, "rank": WHOLE, "dense_rank": WHOLE, "ntile": WHOLE, "percent_rank": DOUBLE,
    "cume_dist": DOUBLE, "lag": "", "lead": "", "first_value": "", "last_value": "", **AGGREGATES,
}  # fmt: skip
PLACES = ("row_number", "rank", "dense_rank", "ntile")


@dataclass(frozen=True, slots=True)
class Terms:
    """Expressions over one scope.

    ``groups`` tells the rows of an aggregate: ``none`` (no aggregate is allowed), those of one
    ``unit`` (``few``: of units with few rows), of ``all`` units, ``free`` rows of no unit, or rows
    ``measured`` already. ``guarded`` are values that outer conditions bound; ``tried`` says that a
    failure would be NULL, ``few`` that no table is large.
    """

    resolve: Callable[[list[str]], Fact]
    subquery: Callable[[Node], Fact]
    groups: str = "none"
    parts: int = 0
    state: str = ""
    guarded: tuple[tuple[Node, End | None, End | None], ...] = ()
    tried: bool = False
    few: bool = False

    def fact(self, node: Node) -> Fact:
        """The facts of an expression. Raises ``Unsafe`` if it may fail or read too much."""
        found = self.any(node)
        if found.exact:
            raise Unsafe("a number that decides something before it has its noise")
        return found

    def any(self, node: Node) -> Fact:
        """The same, also for numbers that have no noise yet."""
        step(10)
        handler = _HANDLERS.get(node["class"])
        if handler is None:
            raise Unsafe(f"an expression of class {node['class']}")
        found = handler(self, node)
        for value, low, high in self.guarded:
            if node == value and found.kind != LIST:
                found = _between(found, low, high)
        return found

    def facts(self, nodes: list[Node]) -> list[Fact]:
        return [self.fact(n) for n in nodes]

    def condition(self, node: Node) -> None:
        """Require a truth value or NULL: the engine casts other values, and that may fail."""
        found = self.fact(node)
        kind = found.held if found.kind == STORED else found.kind
        if kind not in (TRUTH, NULL, "boolean"):
            raise Unsafe(f"a condition that is no truth value but of kind {kind}")

    def of_column(self, node: Node) -> Fact:
        return self.resolve(node["column_names"])

    def of_constant(self, node: Node) -> Fact:
        return read_constant(node["literal"]["kind"], node["literal"]["text"])

    def of_parameter(self, _: Node) -> Fact:
        return plain(NULL)

    def of_cast(self, node: Node) -> Fact:
        number = shown_number(node)
        if number is not None:
            alike([self.fact(number), plain(DOUBLE)])
            return plain(TEXT)
        target = kind_of(node["type_expr"])
        child = self.any(node["child"])
        given = constant(node["child"])
        if not (node["try_cast"] or self.tried or given or is_total_cast(node, child, target)):
            raise Unsafe(f"a CAST from {child.kind} to {target.kind} that may fail")
        if child.exact and target.kind != WHOLE:
            raise Unsafe("a number before its noise, as something else")
        found = cast(child, target, given=given)
        return replace(found, canonical=True) if not_a_number(node) else found

    def of_operator(self, node: Node) -> Fact:
        name, children = node["type"], node["children"]
        if name == "OPERATOR_TRY":
            return replace(self, tried=True).fact(children[0])
        if name == "OPERATOR_COALESCE":
            found = [self.any(c) for c in children]
            exact = any(f.exact for f in found)
            if exact and not (found[0].exact and all(f == NOTHING for f in found[1:])):
                raise Unsafe("a number before its noise, or another")
            return merge_facts(found)
        if name == "OPERATOR_NOT":
            self.condition(children[0])
            return plain(TRUTH)
        found = self.facts(children)
        if name in ("COMPARE_IN", "COMPARE_NOT_IN"):
            for other in found[1:]:
                alike([found[0], other])
        elif name not in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            raise Unsafe(f"the operator {name}")
        return plain(TRUTH)

    def of_comparison(self, node: Node) -> Fact:
        alike([self.fact(node["left"]), self.fact(node["right"])])
        return plain(TRUTH)

    def of_conjunction(self, node: Node) -> Fact:
        for child in node["children"]:
            self.condition(child)
        return plain(TRUTH)

    def of_case(self, node: Node) -> Fact:
        value = canonical(node)
        if value is not None and (found := self.fact(value)).kind == DOUBLE:
            return replace(found, canonical=True)
        results = []
        for check in node["case_checks"]:
            self.condition(check["when_expr"])
            between = tuple(self.between(check["when_expr"]))
            inner = replace(self, guarded=(*self.guarded, *between)) if between else self
            results.append(inner.fact(check["then_expr"]))
        beyond = tuple(b for check in node["case_checks"] for b in above(check["when_expr"]))
        inner = replace(self, guarded=(*self.guarded, *beyond)) if beyond else self
        return merge_facts([*results, inner.fact(node["else_expr"])])

    def between(self, condition: Node) -> Iterator[tuple[Node, End | None, End | None]]:
        """The values that a condition bounds: see ``parts.find_ranges``."""
        for value, low, high in find_ranges(condition):
            yield value, self.fact(low).low, self.fact(high).high

    def of_subquery(self, node: Node) -> Fact:
        if node["child"] is None:
            raise Unsafe("a subquery for a value")
        if self.tried:
            raise Unsafe("a subquery inside TRY, which the engine refuses when it runs")
        alike([self.fact(node["child"]), self.subquery(node)])
        return plain(TRUTH)

    def of_function(self, node: Node) -> Fact:
        name = node["function_name"]
        if node["order_bys"]["orders"] or node["schema"] or node["catalog"]:
            raise Unsafe(f"{name} with an order or a schema")
        if name in AGGREGATES or name in OF_PUBLIC:
            return self._aggregate(node)
        if node["distinct"] or node["filter"]:
            raise Unsafe(f"{name} with DISTINCT or FILTER")
        if self.tried and (value := between_zones(node)) is not None:
            alike([self.fact(value), plain(TIME)])
            return plain(TIME)
        args = arguments(node)
        found = [self.any(a) for a in args] if name in _LINEAR else self.facts(args)
        if name not in _OF_STORED and any(f.kind == STORED for f in found):
            raise Unsafe(f"{name} of a column as it is stored")
        if name in _ARITHMETIC:
            return self._arithmetic(name, args, found)
        if name in _PATTERNS and any(a["class"] != "CONSTANT" for a in args[1:]):
            raise Unsafe(f"{name} with a pattern that is not a constant")
        if name in _PLACED and not all(constant(a) for a in args[_PLACED[name] :]):
            raise Unsafe(f"{name} at a place that is not a constant")
        return self._total(name, args, found)

    def _total(self, name: str, args: list[Node], found: list[Fact]) -> Fact:
        """The facts of a function that only reads its arguments, and cannot fail here."""
        kind = TOTAL.get(name)
        if kind is None and name in TRIED and (self.tried or is_microsecond_part(name, args)):
            kind = TRIED[name]
        if kind is None:
            raise Unsafe(f"the function {name}")
        if any(f.exact for f in found) and not linear(name, found):
            raise Unsafe(f"{name} of numbers before their noise")
        if name in ("least", "greatest"):
            return extreme(name, found, merge_facts(found).kind)
        ends = name == "abs" or (name == "round" and len(args) > 1)
        if ends and found[0].kind == WHOLE and not (self.tried or found[0].bounded):
            raise Unsafe(f"{name} of a whole number that may be the least, or the greatest")
        if name == "struct_pack" and not all(f.kind == WHOLE and f.bounded for f in found):
            raise Unsafe("a list of what is not a bounded whole number")
        return _result(name, kind, found)

    def _arithmetic(self, name: str, args: list[Node], found: list[Fact]) -> Fact:
        kinds = {f.kind for f in found} - {NULL}
        if any(f.exact for f in found) and not linear(name, found):
            raise Unsafe(f"{name} of numbers before their noise")
        if name in ("/", "%", "+", "-", "*") and DOUBLE in kinds and kinds <= set(NUMBERS):
            return arithmetic(name, found, tried=self.tried)
        if kinds & {DATE, TIME, SPAN}:
            if not (self.tried or all(f.bounded for f in found)):
                raise Unsafe("date arithmetic that may overflow")
            return _moved(name, kinds, bounded=all(f.bounded for f in found))
        if not kinds <= {WHOLE}:
            raise Unsafe(f"{name} of {' and '.join(sorted(kinds))}")
        if name in ("<<", ">>", "&"):
            return _bits(name, args, found)
        if name in ("//", "%") and not (self.tried or unequal(args[1]) or found[1].nonzero):
            raise Unsafe(f"{name} by what may be nothing")
        return arithmetic(name, found, tried=self.tried)

    def _aggregate(self, node: Node) -> Fact:
        name = node["function_name"]
        if self.groups == "none":
            raise Unsafe(f"{name} where no aggregate may stand")
        inner = Terms(self.resolve, self.subquery, "none", self.parts, self.state)
        if self.groups == "measured":
            return again(name, [inner.any(a) for a in arguments(node)], node)
        found = inner.facts(arguments(node))
        if node["filter"]:
            inner.condition(node["filter"])
        if name in OF_PUBLIC:
            if self.groups != "free":
                raise Unsafe(f"{name} over other rows than public ones")
            return plain(OF_PUBLIC[name] or found[0].kind)
        return aggregate_fact(name, found, self.groups, distinct=node["distinct"], few=self.few)

    def of_window(self, node: Node) -> Fact:
        name = node["function_name"]
        ordered = node["arg_orders"] and name not in ("first_value", "last_value")
        if name not in _WINDOWS or node["schema"] or node["distinct"] or ordered:
            raise Unsafe(f"the window function {name}")
        if self.state == MEASURED:
            raise Unsafe("a window over numbers before their noise")
        private = self.state == PRIVATE
        inner = replace(self, groups="none")
        keys = inner.facts(node["partitions"])
        covered: frozenset[int] = frozenset().union(*(k.unit for k in keys))
        if private and (not self.parts or len(covered) < self.parts):
            raise Unsafe("a window over rows of several units")
        inner.facts([order["expression"] for order in (*node["orders"], *node["arg_orders"])])
        found = inner.facts([a.get("expression", a) for a in node["arguments"]])
        if node["filter_expr"] is not None:
            inner.condition(node["filter_expr"])
        inner.facts([n for n in (node["offset_expr"], node["default_expr"]) if n is not None])
        if name in AGGREGATES:
            return aggregate_fact(name, found, "unit" if private else "free", distinct=False)
        if name in PLACES:
            return Fact(WHOLE, 0, OWN if private else ROWS, 63, many=ABOVE)
        return plain(_WINDOWS[name] or found[0].kind)


_ARITHMETIC = ("+", "-", "*", "/", "//", "%", "<<", ">>", "&")
_LINEAR = ("+", "-", "*", "least", "struct_pack")
"""Functions of numbers that have no noise yet: see ``sums.linear``."""
_OF_STORED = ("hash", "row", "list_value")
"""Functions that take columns of any type without a conversion."""
_HANDLERS: dict[str, Callable[[Terms, Node], Fact]] = {
    "COLUMN_REF": Terms.of_column, "CONSTANT": Terms.of_constant, "PARAMETER": Terms.of_parameter,
    "CAST": Terms.of_cast, "OPERATOR": Terms.of_operator, "COMPARISON": Terms.of_comparison,
    "CONJUNCTION": Terms.of_conjunction, "CASE": Terms.of_case, "FUNCTION": Terms.of_function,
    "WINDOW": Terms.of_window, "SUBQUERY": Terms.of_subquery,
}  # fmt: skip


def _between(found: Fact, low: End | None, high: End | None) -> Fact:
    """The facts of a value that an outer condition bounds."""
    many = found.many & ~((0 if low is None else BELOW) | (0 if high is None else ABOVE))
    low = found.low if low is None else low
    return replace(found, low=low, high=found.high if high is None else high, many=many)


def _result(name: str, kind: str, found: list[Fact]) -> Fact:
    """The facts of the result of a total function."""
    first = found[0]
    many = ABOVE | BELOW if any(f.many for f in found) else 0
    match name:
        case "sign":
            return fact_of_size(WHOLE, 1)
        case "bit_count":
            return fact_of_size(WHOLE, 128)
        case "struct_pack":
            return Fact(LIST, exact=any(f.exact for f in found))
        case "row" | "list_value" | "list_sort":
            return Fact(kind, canonical=all(f.identical for f in found))
        case "epoch_us":
            return fact_of_size(WHOLE, 1 << 60) if first.bounded else Fact(WHOLE, bits=63)
        case "abs" if first.bounded:
            return Fact(first.kind, 0, first.size, first.bits, many=many and ABOVE)
        case "round" if first.bounded and len(found) > 1:
            most = first.size + 10 ** max(0, -(found[-1].low or 0))
            return Fact(first.kind, -most, most, first.bits, many=many, share=first.share)
        case "nullif":
            alike(found)
            return replace(first, unit=frozenset(), keys=frozenset())
        case "ceil" | "floor" | "trunc" | "round" if len(found) == 1:
            down = math.ceil if name == "ceil" else math.floor
            up = math.floor if name == "floor" else math.ceil
            low = None if first.low is None else down(first.low)
            high = None if first.high is None else up(first.high)
            return Fact(
                first.kind, low, high, first.bits, many=many, share=first.share,
                whole=first.kind == DOUBLE,
            )  # fmt: skip
        case _:
            pass
    bits = 63 if kind == WHOLE else first.bits if not kind else 0
    return Fact(kind or first.kind, bits=bits, many=many) if many else plain(kind or first.kind)


def _bits(name: str, args: list[Node], found: list[Fact]) -> Fact:
    """The facts of shifts of constants and of hashes, and of bits that a constant selects."""
    one, other = found
    if name == "&":
        if not (one.bounded and other.bounded):
            raise Unsafe("bits of a number without ends")
        known = [f.high for f in found if f.low is not None and f.low >= 0 and f.high is not None]
        return Fact(WHOLE, 0, min(known), 127) if known else Fact(WHOLE, bits=127)
    if name == ">>":
        left = place_bits(args)
        if left is None:
            raise Unsafe("a shift of what is no hash")
        return Fact(WHOLE, 0, (1 << left) - 1, 64)
    if is_marked_bit(args):
        return Fact(WHOLE, 0, 1 << 64, 127)
    if not all(map(constant, args)) or not 0 <= (other.low or 0) < one.bits:
        raise Unsafe("a shift that may be too far")
    moved = (one.low or 0) << (other.low or 0)
    return Fact(WHOLE, moved, moved, one.bits)


def _moved(name: str, kinds: set[str], *, bounded: bool) -> Fact:
    if name == "-" and kinds == {DATE}:
        return fact_of_size(WHOLE, 1 << 32) if bounded else Fact(WHOLE, bits=63)
    kind = TIME if SPAN in kinds else DATE if DATE in kinds else TIME
    if name == "-" and kinds == {TIME}:
        kind = SPAN
    return fact_of_size(kind, 0, 0) if bounded else plain(kind)
