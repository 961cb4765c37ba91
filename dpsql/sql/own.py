"""Functions of differential privacy that no engine has.

The argument of ``DP_INTERVAL_LOW(n)`` is an output of the same SELECT, as in Snowflake, or a column
of a query whose result is noised. The result is an end of the noised number's interval.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.sql.spans import span_of

OWN = {"DP_INTERVAL_LOW": "interval_low", "DP_INTERVAL_HIGH": "interval_high"}
"""The names of these functions in SQL, and in plans."""
MOST_COPIED = 20_000


def own(node: exp.Expr) -> str:
    """The plan's name of a call of such a function; "" for any other node."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return ""
    return OWN.get(str(node.this).upper(), "")


def resolve_aliases(tree: exp.Expr) -> None:
    """Replace an alias in such a call by the output that it names."""
    copied = 0
    for call in [node for node in tree.find_all(exp.Anonymous) if own(node)]:
        select, name = call.find_ancestor(exp.Select), _name(call.expressions[0])
        outputs = [] if select is None else select.expressions
        named = {
            item.alias.casefold(): item.this
            for item in outputs
            if isinstance(item, exp.Alias) and not any(own(n) for n in item.this.walk())
        }
        meant = named.get(name.casefold()) if name else None
        if meant is not None:
            copied += sum(1 for _ in meant.walk())
            if copied > MOST_COPIED:
                raise Refused(_too_often(call))
            call.set("expressions", [meant.copy()])


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        return str(node.name)
    return str(node.name) if isinstance(node, exp.Literal) and node.is_string else ""


def _too_often(call: exp.Expr) -> Refusal:
    return Refusal(
        "DP115",
        "too many intervals of large expressions are asked for",
        "Each interval is computed from the whole expression.",
        "Compute it in a subquery in FROM, and take the interval of its column.",
        span_of(call),
    )


ESTIMATE = "ESTIMATE_REMAINING_DP_AGGREGATES"
ESTIMATED = (
    "number_of_remaining_dp_aggregates", "budget_limit", "budget_window", "budget_spent",
)  # fmt: skip
"""The columns of its result; ``dpsql.remaining`` has them for each table."""


def resolve_tables(tree: exp.Expr) -> None:
    """Write ``TABLE(SNOWFLAKE.DATA_PRIVACY.ESTIMATE_REMAINING_DP_AGGREGATES('t'))`` as a query."""
    found: list[tuple[str, Span | None]] = []
    for node in list(tree.find_all(exp.Table, exp.TableFromRows)):
        call = _estimate(node.this)
        if call is None or node.parent is None:
            continue
        name = call.expressions[0] if len(call.expressions) == 1 else None
        if not isinstance(name, exp.Literal) or not name.is_string:
            raise Refused(_no_name(call))
        wanted = str(name.name).rpartition(".")[2].lower()
        query = exp.Select(
            expressions=[exp.column(column) for column in ESTIMATED],
            from_=exp.From(this=exp.table_("remaining", db="dpsql")),
            where=exp.Where(
                this=exp.EQ(
                    this=exp.Lower(this=exp.column("table_name")),
                    expression=exp.Literal.string(wanted),
                )
            ),
        )
        place = span_of(node)
        found.append((wanted, span_of(name)))
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(ESTIMATE.lower()))
        new = exp.Subquery(this=query, alias=alias)
        node.replace(new)
        if place is not None:
            new.meta["start"], new.meta["end"] = place.start, place.end - 1
    tree.meta[_TABLES] = found


def estimated_tables(tree: exp.Expr) -> list[tuple[str, Span | None]]:
    """The tables that such calls name, with their places."""
    return list(tree.meta.get(_TABLES, ()))


_TABLES = "estimated"


def _estimate(node: object) -> exp.Anonymous | None:
    """The call in a table function, with or without the schema that it has in Snowflake."""
    while True:
        if isinstance(node, exp.Anonymous) and str(node.this).upper() == "TABLE":
            node = node.expressions[0] if len(node.expressions) == 1 else None
        elif isinstance(node, exp.Dot):
            node = node.expression
        elif isinstance(node, exp.Anonymous) and str(node.this).upper() == ESTIMATE:
            return node
        else:
            return None


def _no_name(call: exp.Expr) -> Refusal:
    return Refusal(
        "DP114",
        f"{ESTIMATE} takes the name of a table, as a literal",
        "It tells what may still be asked of that table.",
        f"SELECT * FROM TABLE({ESTIMATE}('orders'))",
        span_of(call),
    )
