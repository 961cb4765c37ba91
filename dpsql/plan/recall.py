"""The identity of a measurement: equal keys may share one release.

Claim: two plans have the same key only when they ask the same statements with the same noise of
the same data version, so that the stored numbers are an answer to both.
"""

from __future__ import annotations

import hashlib
import json

from dpsql.plan.priced import Noised, PricedPlan
from dpsql.sql.blocks import Writer


def recall_key(priced: PricedPlan, policy_version: str) -> str:
    """A digest of statements and noise, under a policy version (which holds the data version)."""
    parts = [
        {
            "sql": part.sql,
            "noise": [_noise(item) for item in part.noised],
            "columns": [f.shape.kind.value for f in part.measurement.key_fields],
            "threshold": None if part.selection is None else part.selection.threshold,
            "selection": None if part.selection is None else _noise(part.selection.units),
        }
        for part in priced.parts
    ]
    lookups = [[v.name, v.form, Writer().select(v.relation)] for v in priced.plan.lookups]
    whole = {"policy": policy_version, "parts": parts, "lookups": lookups}
    text = json.dumps(whole, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _noise(item: Noised) -> list[str]:
    return [repr(item.noise), str(item.shift), type(item.statistic).__name__]
