"""The discrete Gaussian law P(x) ~ exp(-x**2 / (2 variance)) on the integers, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.bernoulli import keep_with_exp
from dpsql.privacy.discrete_laplace import CHUNK, draw
from dpsql.privacy.entropy import Randomness

LARGEST_VARIANCE = 1 << 80
_STEEPEST = Fraction(1 << 200)


def check_variance(variance: Fraction) -> None:
    """Refuse a variance outside (0, 2**80].

    >>> check_variance(Fraction(-1))
    Traceback (most recent call last):
    ...
    ValueError: the variance of noise must be above 0 and at most 2**80, not -1
    """
    if not 0 < variance <= LARGEST_VARIANCE:
        raise ValueError(f"the variance of noise must be above 0 and at most 2**80, not {variance}")


def sample_discrete_gaussian(
    entropy: Randomness, n: int, variance: Fraction
) -> npt.NDArray[np.int64]:
    """Draw ``n`` independent numbers with P(x) proportional to exp(-x**2 / (2 variance)).

    Claim: the law is exact. How often a proposal is rejected is independent of what is kept.
    Assumes: ``entropy`` gives independent fair bits; floats are IEEE doubles and ``np.exp`` errs by
        less than 2**-40 of its value, for arguments between -60 and 0.
    Argument: a discrete Laplace y of scale t is kept with probability exp(-(|y| - v/t)**2 / (2v)),
        which is the Gaussian weight over the Laplace weight up to a constant (Canonne, Kamath,
        Steinke 2020, algorithm 3). Floats only decide tosses that are not close: see
        ``keep_with_exp``. Its assumption holds because v/t is at most sqrt(v): while an exponent is
        below 60, floats give (|y| - v/t) / sqrt(v) to 2**-48, and so the exponent to 2**-43. (The
        steepness is capped at 2**200 only for variances at which no y but 0 is ever kept.)

    >>> from dpsql.privacy.entropy import Entropy
    >>> draws = sample_discrete_gaussian(Entropy(), 10_000, Fraction(100))
    >>> 9 < draws.std() < 11
    np.True_
    """
    check_variance(variance)
    spread = Fraction(math.isqrt(math.floor(64 * variance)) + 1, 8)  # just above sqrt(variance)
    centre = variance / spread
    steepness = float(min(1 / (2 * variance), _STEEPEST))
    result, done = np.empty(n, dtype=np.int64), 0
    while done < n:
        size = min(CHUNK, (n - done) * 8 // 5 + 16)
        proposal = draw(entropy, size, spread)
        distance = np.abs(proposal) - float(centre)
        near = distance * distance * steepness
        kept = keep_with_exp(
            entropy, proposal, near, lambda y: (abs(y) - centre) ** 2 / (2 * variance)
        )
        accepted = proposal[kept][: n - done]
        result[done : done + len(accepted)] = accepted
        done += len(accepted)
    return result
