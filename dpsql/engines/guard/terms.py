"""Expressions of a statement: their kind, their size, and whether they can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce

from dpsql.engines.guard.parts import Node, arguments, between, constant, marked, place_bits


class Unsafe(Exception):
    """A statement that must not run; the words name its parts, never data."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is certain of a value: its kind, whether constants of the text bound it, whose key.

    ``unit`` are the parts of the unit's key that the value is.
    """

    kind: str
    low: bool = False
    high: bool = False
    unit: frozenset[int] = frozenset()
    fields: Mapping[str, Fact] = field(default_factory=dict, compare=False)

    @property
    def bounded(self) -> bool:
        """Whether constants of the statement are on both sides of it."""
        return self.low and self.high


@lru_cache(maxsize=256)
def plain(kind: str, low: bool = False, high: bool = False) -> Fact:  # noqa: FBT001, FBT002
    """A fact about a value that is no key, made once: there are few of them."""
    return Fact(kind, low, high)


WHOLE, DOUBLE, TEXT, TRUTH = "whole", "double", "text", "truth"
DATE, TIME, NULL, SPAN, LIST, STORED = "date", "time", "null", "span", "list", "stored"
NUMBERS, TIMES = (WHOLE, DOUBLE), (DATE, TIME)
KINDS = {
    "BIGINT": WHOLE, "INTEGER": WHOLE, "HUGEINT": WHOLE, "DOUBLE": DOUBLE, "VARCHAR": TEXT,
    "BOOLEAN": TRUTH, "DATE": DATE, "TIMESTAMP": TIME, "INTERVAL": SPAN,
}  # fmt: skip
_LITERALS = {
    "INTEGER": WHOLE, "BIGINT": WHOLE, "HUGEINT": WHOLE, "DECIMAL": DOUBLE, "DOUBLE": DOUBLE,
    "FLOAT": DOUBLE, "NUMERIC": DOUBLE, "STRING": TEXT, "BOOLEAN": TRUTH, "NULL_LITERAL": NULL,
}  # fmt: skip
TOTAL: dict[str, str] = {
    "abs": "", "ceil": "", "floor": "", "trunc": "", "round": "", "sign": WHOLE, "sqrt": DOUBLE,
    "exp": DOUBLE, "ln": DOUBLE, "log": DOUBLE, "log10": DOUBLE, "pow": DOUBLE, "power": DOUBLE,
    "least": "", "greatest": "", "nullif": "", "isnan": TRUTH, "hash": WHOLE, "lower": TEXT,
    "upper": TEXT, "trim": TEXT, "ltrim": TEXT, "rtrim": TEXT, "length": WHOLE, "substring": TEXT,
    "left": TEXT, "right": TEXT, "||": TEXT, "strpos": WHOLE, "replace": TEXT, "chr": TEXT,
    "starts_with": TRUTH, "~~": TRUTH, "~~*": TRUTH, "!~~": TRUTH, "!~~*": TRUTH,
    "like_escape": TRUTH, "ilike_escape": TRUTH, "not_like_escape": TRUTH,
    "not_ilike_escape": TRUTH, "regexp_replace": TEXT, "epoch_us": WHOLE, "struct_pack": LIST, "row": "record",
    "list_value": "array", "list_sort": "array", "bit_count": WHOLE,
}  # fmt: skip
"""Functions that never fail and see their arguments alone; the kind they give (empty: the first's)."""
TRIED: dict[str, str] = {
    "date_trunc": TIME, "date_part": WHOLE, "make_timestamp": TIME, "strftime": TEXT,
}  # fmt: skip
"""Functions that may fail, and stand inside TRY."""
_PATTERNS = ("~~", "~~*", "!~~", "!~~*", "regexp_replace", "like_escape", "ilike_escape")
_PLACED = {"substring": 1, "left": 1, "right": 1, "round": 1, "chr": 0}
"""Functions that fail for some places and lengths: from which argument on they are constants."""
_AGGREGATES = {
    "count": WHOLE, "count_star": WHOLE, "sum": "", "avg": DOUBLE, "min": "", "max": "",
    "var_pop": DOUBLE, "var_samp": DOUBLE, "stddev_pop": DOUBLE, "stddev_samp": DOUBLE,
    "quantile_cont": "", "quantile_disc": "", "bool_and": TRUTH, "bool_or": TRUTH,
    "count_if": WHOLE, "list": LIST, "bit_or": WHOLE,
}  # fmt: skip
_COUNTING = ("count", "count_star", "count_if")
_WINDOWS = {
    "row_number": WHOLE, "rank": WHOLE, "dense_rank": WHOLE, "ntile": WHOLE, "percent_rank": DOUBLE,
    "cume_dist": DOUBLE, "lag": "", "lead": "", "first_value": "", "last_value": "", **_AGGREGATES,
}  # fmt: skip
_PLACES = ("row_number", "rank", "dense_rank", "ntile", *_COUNTING)


@dataclass(frozen=True, slots=True)
class Terms:
    """Expressions over one scope.

    ``groups`` says over whose rows an aggregate stands: ``none`` may stand there, one ``unit``'s,
    those of ``all``, or ``free`` ones that are no unit's. ``guarded`` are values that a condition
    around has put between constants; ``tried`` says that a failure would be NULL.
    """

    resolve: Callable[[list[str]], Fact]
    subquery: Callable[[Node], Fact]
    groups: str = "none"
    parts: int = 0
    private: bool = False
    guarded: tuple[Node, ...] = ()
    tried: bool = False

    def fact(self, node: Node) -> Fact:
        """What is certain of an expression; ``Unsafe`` where it may fail or see too much."""
        handler = _HANDLERS.get(node["class"])
        if handler is None:
            raise Unsafe(f"an expression of class {node['class']}")
        found = handler(self, node)
        if self.guarded and found.kind != LIST and node in self.guarded:
            return Fact(found.kind, True, True, found.unit, found.fields)
        return found

    def facts(self, nodes: list[Node]) -> list[Fact]:
        return [self.fact(n) for n in nodes]

    def of_column(self, node: Node) -> Fact:
        return self.resolve(node["column_names"])

    def of_constant(self, node: Node) -> Fact:
        kind = _LITERALS.get(node["literal"]["kind"])
        if kind is None:
            raise Unsafe(f"a constant of type {node['literal']['kind']}")
        return plain(kind, True, True)

    def of_parameter(self, _: Node) -> Fact:
        return plain(NULL, True, True)

    def of_cast(self, node: Node) -> Fact:
        kinds = kind_of(node["type_expr"])
        child = self.fact(node["child"])
        given = constant(node["child"])
        if not (node["try_cast"] or self.tried or given or _total_cast(node, child, kinds)):
            raise Unsafe(f"a CAST from {child.kind} to {kinds.kind} that may fail")
        if (child.kind in (TRUTH, NULL) and kinds.kind in NUMBERS) or given:
            size = (True, True)
        else:
            numbers = kinds.kind in NUMBERS and child.kind in NUMBERS
            size = (child.low and numbers, child.high and numbers)
        low, high = size
        if child.unit and child.kind in (STORED, kinds.kind):
            return Fact(kinds.kind, low, high, child.unit, kinds.fields)
        return (
            Fact(kinds.kind, low, high, fields=kinds.fields)
            if kinds.fields
            else plain(kinds.kind, low, high)
        )

    def of_operator(self, node: Node) -> Fact:
        name = node["type"]
        if name == "OPERATOR_TRY":
            return replace(self, tried=True).fact(node["children"][0])
        found = self.facts(node["children"])
        if name == "OPERATOR_COALESCE":
            return merged(found)
        if name in ("COMPARE_IN", "COMPARE_NOT_IN"):
            for other in found[1:]:
                _alike(found[0], other)
            return plain(TRUTH)
        if name in ("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            return plain(TRUTH)
        raise Unsafe(f"the operator {name}")

    def of_comparison(self, node: Node) -> Fact:
        _alike(self.fact(node["left"]), self.fact(node["right"]))
        return plain(TRUTH)

    def of_conjunction(self, node: Node) -> Fact:
        self.facts(node["children"])
        return plain(TRUTH)

    def of_case(self, node: Node) -> Fact:
        results = []
        for check in node["case_checks"]:
            self.fact(check["when_expr"])
            inside = (*self.guarded, *between(check["when_expr"]))
            results.append(replace(self, guarded=inside).fact(check["then_expr"]))
        return merged([*results, self.fact(node["else_expr"])])

    def of_subquery(self, node: Node) -> Fact:
        if node["child"] is None:
            raise Unsafe("a subquery for a value")
        _alike(self.fact(node["child"]), self.subquery(node))
        return plain(TRUTH)

    def of_function(self, node: Node) -> Fact:
        name = node["function_name"]
        if node["order_bys"]["orders"] or node["schema"] or node["catalog"]:
            raise Unsafe(f"{name} with an order or a schema")
        if name in _AGGREGATES:
            return self._aggregate(node)
        if node["distinct"] or node["filter"]:
            raise Unsafe(f"{name} with DISTINCT or FILTER")
        args = arguments(node)
        found = self.facts(args)
        if name in _ARITHMETIC:
            return self._arithmetic(name, args, found)
        if name in _PATTERNS and any(a["class"] != "CONSTANT" for a in args[1:]):
            raise Unsafe(f"{name} with a pattern that is not a constant")
        if name in _PLACED and not all(constant(a) for a in args[_PLACED[name] :]):
            raise Unsafe(f"{name} at a place that is not a constant")
        return self._total(name, args, found)

    def _total(self, name: str, args: list[Node], found: list[Fact]) -> Fact:
        """A function of its arguments alone, which cannot fail here."""
        kind = TOTAL.get(name)
        if kind is None and name in TRIED and (self.tried or _microseconds(name, args)):
            kind = TRIED[name]
        if kind is None:
            raise Unsafe(f"the function {name}")
        if name in ("least", "greatest"):
            return _extreme(name, found)
        ends = name == "abs" or (name == "round" and len(args) > 1)
        if ends and found[0].kind == WHOLE and not (self.tried or found[0].bounded):
            raise Unsafe(f"{name} of a whole number that may be the least, or the greatest")
        if name == "struct_pack" and not all(f.kind == WHOLE and f.bounded for f in found):
            raise Unsafe("a list of what is not a bounded whole number")
        size = (found[0].bounded and (not kind or name == "epoch_us")) or name in _SMALL
        return plain(kind or found[0].kind, size, size)

    def _arithmetic(self, name: str, args: list[Node], found: list[Fact]) -> Fact:
        kinds = {f.kind for f in found} - {NULL}
        size = all(f.bounded for f in found)
        if name in ("/", "%", "+", "-", "*") and DOUBLE in kinds and kinds <= set(NUMBERS):
            size = size and name != "/" and name != "%"
            return plain(DOUBLE, size, size)
        if kinds & {DATE, TIME, SPAN}:
            if not (self.tried or size):
                raise Unsafe("date arithmetic that may overflow")
            return _moved(name, kinds, size=size)
        if not kinds <= {WHOLE}:
            raise Unsafe(f"{name} of {' and '.join(sorted(kinds))}")
        if name == ">>":
            return _place(args)
        if name == "<<" and not (marked(args) or all(map(constant, args))):
            raise Unsafe("a shift that may be too far")
        divides = name in ("//", "%")
        if divides and not self.tried:
            size = size and (args[1]["class"] == "CONSTANT" or found[1].bounded)
        if not (self.tried or size):
            raise Unsafe(f"whole-number {name} that may overflow")
        return plain(WHOLE, size, size)

    def _aggregate(self, node: Node) -> Fact:
        name = node["function_name"]
        if self.groups == "none":
            raise Unsafe(f"{name} where no aggregate may stand")
        inner = replace(self, groups="none")
        found = inner.facts(arguments(node))
        if node["filter"]:
            inner.fact(node["filter"])
        if name in _COUNTING:
            return plain(WHOLE, True, True)
        whole = all(f.kind in (WHOLE, LIST) and (f.bounded or f.kind == LIST) for f in found)
        if self.groups == "all" and not (name in ("sum", "list") and whole):
            raise Unsafe(
                f"{name} over rows of several units, of what is not a bounded whole number"
            )
        size = name in ("sum", "min", "max", "bit_or") and whole
        kind = _AGGREGATES[name] or found[0].kind
        return plain(kind, size, size)

    def of_window(self, node: Node) -> Fact:
        name = node["function_name"]
        if name not in _WINDOWS or node["schema"] or node["distinct"] or node["arg_orders"]:
            raise Unsafe(f"the window function {name}")
        inner = replace(self, groups="free" if self.groups == "none" else "none")
        keys = replace(self, groups="none").facts(node["partitions"])
        covered: frozenset[int] = frozenset().union(*(k.unit for k in keys))
        if self.private and (not self.parts or len(covered) < self.parts):
            raise Unsafe("a window over rows of several units")
        for order in node["orders"]:
            inner.fact(order["expression"])
        found = inner.facts([a.get("expression", a) for a in node["arguments"]])
        others = [node["filter_expr"], node["offset_expr"], node["default_expr"]]
        inner.facts([n for n in others if n is not None])
        size = name in _PLACES or (name in ("sum", "min", "max") and found[0].bounded)
        return plain(_WINDOWS[name] or found[0].kind, size, size)


_ARITHMETIC = ("+", "-", "*", "/", "//", "%", "<<", ">>", "&")
_SMALL = ("sign", "bit_count")
_HANDLERS: dict[str, Callable[[Terms, Node], Fact]] = {
    "COLUMN_REF": Terms.of_column, "CONSTANT": Terms.of_constant, "PARAMETER": Terms.of_parameter,
    "CAST": Terms.of_cast, "OPERATOR": Terms.of_operator, "COMPARISON": Terms.of_comparison,
    "CONJUNCTION": Terms.of_conjunction, "CASE": Terms.of_case, "FUNCTION": Terms.of_function,
    "WINDOW": Terms.of_window, "SUBQUERY": Terms.of_subquery,
}  # fmt: skip


SURE = frozenset(
    [(kind, TEXT) for kind in (WHOLE, DOUBLE, TEXT, TRUTH, DATE, TIME, SPAN)]
    + [(kind, kind) for kind in (DOUBLE, TRUTH, DATE, TIME, SPAN)]
    + [(NULL, kind) for kind in (WHOLE, DOUBLE, TEXT, TRUTH, DATE, TIME, SPAN)]
    + [(WHOLE, DOUBLE), (TRUTH, WHOLE)]
)
"""Kinds between which a plain CAST never fails, whatever the value."""


SHORT = frozenset(["date_part", "epoch_us", "length", "strpos", "sign"])
"""Functions of whole numbers below 2**63, whatever the value."""


def _place(args: list[Node]) -> Fact:
    """The first bits of a hash: fewer than all, so that they are a whole number of 64 bits."""
    if place_bits(args) is None:
        raise Unsafe("a shift of what is no hash")
    return plain(WHOLE, True, True)


def _total_cast(node: Node, child: Fact, target: Fact) -> bool:
    """Whether a plain CAST cannot fail: a pair of the list, or whole numbers that have room.

    The widest whole numbers hold every other. Into narrower ones goes what constants of the text
    bound; that these constants fit is what ``plan.grid`` claims.
    """
    if node["type_expr"]["type_name"] in ("LIST", "STRUCT"):
        return False
    if (child.kind, target.kind) in SURE:
        return True
    if target.kind != WHOLE:
        return False
    widest = node["type_expr"]["type_name"] == "HUGEINT" and child.kind == WHOLE
    return widest or _in_64_bits(node) or (child.kind in NUMBERS and child.bounded)


def _in_64_bits(node: Node) -> bool:
    """Whether what is cast to BIGINT is a function whose numbers have no more bits than that."""
    inner = node["child"]
    while inner["class"] == "OPERATOR" and inner["type"] == "OPERATOR_TRY":
        (inner,) = inner["children"]
    short = inner["class"] == "FUNCTION" and inner["function_name"] in SHORT
    return short and bool(node["type_expr"]["type_name"] == "BIGINT")


def kind_of(node: Node) -> Fact:
    """The kind of a type; lists of records have a fact for each field."""
    name = node["type_name"].upper()
    if name == "LIST":
        return replace(kind_of(node["children"][0]), low=False, high=False)
    if name == "STRUCT":
        return Fact(STORED, fields={c["alias"]: kind_of(c) for c in node["children"]})
    if name not in KINDS:
        raise Unsafe(f"the type {name}")
    return plain(KINDS[name])


def merged(found: list[Fact]) -> Fact:
    """What is certain of a value that is one of several."""
    kinds = {f.kind for f in found} - {NULL}
    if len(kinds) > 1 and not kinds <= set(NUMBERS):
        raise Unsafe(f"one value of {' and '.join(sorted(kinds))}")
    kind = DOUBLE if len(kinds) > 1 else next(iter(kinds), NULL)
    unit = reduce(frozenset.intersection, [f.unit for f in found])
    return Fact(kind, all(f.low for f in found), all(f.high for f in found), unit, found[0].fields)


def _alike(one: Fact, other: Fact) -> None:
    """Only like is compared with like: else an engine converts, and may fail."""
    kinds = {one.kind, other.kind} - {NULL}
    if len(kinds) < 2 or kinds <= set(NUMBERS) or (one.kind != STORED and other.kind != STORED
        and kinds <= {DATE, TIME} and (one.bounded or other.bounded)):  # fmt: skip
        return
    raise Unsafe(f"a comparison of {' and '.join(sorted(kinds))}")


def _extreme(name: str, found: list[Fact]) -> Fact:
    """The least of several is bounded above by each that is, and below if all are."""
    low = all(f.low for f in found) or (name == "greatest" and any(f.low for f in found))
    high = all(f.high for f in found) or (name == "least" and any(f.high for f in found))
    return replace(merged(found), low=low, high=high, unit=frozenset())


def _moved(name: str, kinds: set[str], *, size: bool) -> Fact:
    if name == "-" and len(kinds) == 1:
        return Fact(WHOLE if DATE in kinds else SPAN, size, size)
    if SPAN in kinds:
        return Fact(TIME, size, size)
    return Fact(DATE if DATE in kinds else TIME, size, size)


def _microseconds(name: str, args: list[Node]) -> bool:
    """The one part of a time that is always there."""
    return name == "date_part" and args[0].get("literal", {}).get("text") == "microsecond"
