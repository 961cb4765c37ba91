"""What a budget cannot answer: refusals that follow from it and from the plan."""

from __future__ import annotations

from dpsql.diagnostics.refusal import Refusal
from dpsql.plan.nodes import Measurement
from dpsql.price.request import Request


def not_public(measurement: Measurement) -> Refusal:
    """Groups are chosen for a delta, and there is none."""
    names = ", ".join(f'"{f.name}"' for f in measurement.key_fields)
    span = next((k.span for k in measurement.keys if k.span is not None), None)
    return Refusal(
        "DP501",
        f"the groups of {names} are not public",
        "A group can exist because of one unit. Seeing it listed shows that the unit is in the "
        "data, whatever noise its count carries. Choosing groups privately needs a delta, and "
        "this session has none.",
        "Name the groups: WHERE key IN ('a', 'b') - every group you list is answered, empty ones "
        "too; or ask the data owner to declare `values` for the column.",
        span,
    )


def too_noisy() -> Refusal:
    """Wider noise is not drawn, and no coarser grid makes it narrower."""
    return Refusal(
        "DP204",
        "the noise of this answer would be wider than what 2^39 rows add",
        "One unit may have so many rows, and the epsilon is so small, that the answer would be "
        "noise alone.",
        "Ask for a larger epsilon, or count units: COUNT(DISTINCT the key).",
    )


def no_mechanism(request: Request) -> Refusal:
    """What the session asks for and what its role allows have nothing in common."""
    return Refusal(
        "DP405",
        f"the mechanism {request.mechanism} cannot be used here",
        "The role allows " + ", ".join(request.allowed) + "; Gaussian noise also needs a delta.",
        "SET dpsql.mechanism = 'auto'",
    )
