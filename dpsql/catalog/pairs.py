"""The fields that the records of all aggregates of two numbers have in common."""

from __future__ import annotations

from dpsql.catalog.record import (
    EVERY_DIALECT,
    NUMBERS,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Lower,
    Needs,
    ResultShape,
    Steady,
    Unanswered,
)

TWO = ("this", "expression")


def pair_record(
    name: str,
    about: str,
    node: str,
    shape: ResultShape,
    lower: Lower,
    example: str,
    arguments: tuple[str, ...] = TWO,
) -> AggregateRecord:
    """The record of an aggregate of two numbers, over the rows where neither is NULL."""
    return AggregateRecord(
        name=name,
        about=about,
        nodes=(
            AggregateNode(
                name=node, spellings=(), arguments=arguments, form=Form.VALUES, output=name,
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(2, 2),
        kinds=NUMBERS,
        shape=shape,
        lower=lower,
        needs=Needs.BOUNDS,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=False,
        group_bounds=False,
        per_unit=Unanswered(
            f"{name.upper()} is not taken over the rows of one unit",
            "Engines fail on some rows here, and such a failure would reveal something about "
            "those rows.",
            "Use AVG, SUM, MIN, MAX or MEDIAN.",
        ),
        steady=Steady.NEVER,
        chooses=False,
        windowed=False,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=(example,),
    )  # fmt: skip
