"""Noise laws, one file each: the sampler, the spread, and the law for a given privacy parameter."""

from __future__ import annotations

from dpsql.privacy.mechanisms.exponential import (
    Exponential,
    exponential_for,
    exponential_for_zcdp,
)
from dpsql.privacy.mechanisms.gaussian import DiscreteGaussian, gaussian_for, gaussian_threshold
from dpsql.privacy.mechanisms.laplace import DiscreteLaplace, laplace_for, laplace_threshold
from dpsql.privacy.mechanisms.truncated_geometric import (
    TruncatedGeometric,
    truncated_geometric_for,
)

Mechanism = DiscreteLaplace | DiscreteGaussian | TruncatedGeometric

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Mechanism",
    "TruncatedGeometric",
    "exponential_for",
    "exponential_for_zcdp",
    "gaussian_for",
    "gaussian_threshold",
    "laplace_for",
    "laplace_threshold",
    "truncated_geometric_for",
]
