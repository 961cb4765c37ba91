"""The discrete Laplace law cut to ``[-bound, bound]``, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.bernoulli import keep_with_exp
from dpsql.privacy.discrete_laplace import CHUNK, check_scale, draw
from dpsql.privacy.entropy import Randomness

LARGEST_BOUND = 1 << 62
FLAT = 2
"""Up to this epsilon * bound the law is so flat that fewer uniform proposals are rejected."""


def sample_truncated_geometric(
    entropy: Randomness, n: int, epsilon: Fraction, bound: int
) -> npt.NDArray[np.int64]:
    """Draw ``n`` independent numbers, P(x) proportional to exp(-epsilon * |x|) for |x| <= bound.

    Claim: the law is exact. How often a proposal is rejected is independent of what is kept.
    Assumes: ``entropy`` gives independent fair bits; floats as for ``keep_with_exp``.
    Argument: rejection. A discrete Laplace number is kept if it is within the bound (at least 1 -
        exp(-2) of them are), or a uniform number within the bound is kept with probability
        exp(-epsilon * |x|) (at least 0.43 of them are).

    >>> from dpsql.privacy.entropy import Entropy
    >>> draws = sample_truncated_geometric(Entropy(), 1000, Fraction(1, 10), 3)
    >>> int(draws.min()), int(draws.max())
    (-3, 3)
    """
    if not 0 <= bound <= LARGEST_BOUND:
        raise ValueError(f"the bound of noise must be from 0 to 2**62, not {bound}")
    if epsilon <= 0:
        raise ValueError(f"the epsilon of noise must be above 0, not {epsilon}")
    check_scale(1 / epsilon)
    propose = _from_uniform if epsilon * bound <= FLAT else _from_laplace
    result, done = np.empty(n, dtype=np.int64), 0
    while done < n:
        size = min(CHUNK, (n - done) * 5 // 4 + 16)
        kept = propose(entropy, size, epsilon, bound)[: n - done]
        result[done : done + len(kept)] = kept
        done += len(kept)
    return result


def _from_laplace(
    entropy: Randomness, n: int, epsilon: Fraction, bound: int
) -> npt.NDArray[np.int64]:
    proposal = draw(entropy, n, 1 / epsilon)
    return proposal[np.abs(proposal) <= bound]


def _from_uniform(
    entropy: Randomness, n: int, epsilon: Fraction, bound: int
) -> npt.NDArray[np.int64]:
    """Uniform words below 2**k > 2 * bound, of which those above 2 * bound are rejected.

    Each of the others is kept with probability exp(-epsilon * |x|).
    """
    mask = (1 << (2 * bound).bit_length()) - 1
    words = (entropy.u64(n) & np.uint64(mask)).astype(np.int64)
    proposal = words[words <= 2 * bound] - bound
    near = np.abs(proposal) * float(epsilon)
    return proposal[keep_with_exp(entropy, proposal, near, lambda x: epsilon * abs(x))]
