"""Faults of noise and selection: less of it, the same twice, or none where it matters."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "laplace noise is three quarters as wide",
        "noise",
        (
            Edit(
                "privacy/mechanisms/laplace.py",
                "return sample_discrete_laplace(entropy, n, self.scale)",
                "return sample_discrete_laplace(entropy, n, self.scale * 3 / 4)",
            ),
        ),
        "Each answer tells a third more than it is charged for.",
    ),
    Fault(
        "gaussian noise has half of its variance",
        "noise",
        (
            Edit(
                "privacy/mechanisms/gaussian.py",
                "return sample_discrete_gaussian(entropy, n, self.variance)",
                "return sample_discrete_gaussian(entropy, n, self.variance / 2)",
            ),
        ),
        "Each answer costs twice the rho that is charged.",
    ),
    Fault(
        "all groups have the same noise",
        "noise",
        (
            Edit(
                "release/noise.py",
                "    drawn = item.noise.sample(entropy, len(exact))\n",
                "    drawn = np.repeat(item.noise.sample(entropy, 1), len(exact))\n",
            ),
        ),
        "Differences between groups of one answer are exact.",
    ),
    Fault(
        "both halves have the same noise",
        "noise",
        (
            Edit(
                "release/noise.py",
                "                add_noise(half, item, self.entropy) for half in halves(*pair, item.halves)\n            )",
                "                half + drawn for drawn in [item.noise.sample(self.entropy, len(exact))] for half in halves(*pair, item.halves)\n            )",
            ),
        ),
        "SUM beside COUNT is their difference, in which the noise is gone: the sum is exact.",
    ),
    Fault(
        "no noise is added to nothing",
        "noise",
        (
            Edit(
                "release/noise.py",
                "    drawn = item.noise.sample(entropy, len(exact))\n",
                "    drawn = item.noise.sample(entropy, len(exact)) * (exact != 0)\n",
            ),
        ),
        "A group that is exactly zero has no row, and says so.",
    ),
    Fault(
        "noise is never negative",
        "noise",
        (
            Edit(
                "release/noise.py",
                "    drawn = item.noise.sample(entropy, len(exact))\n",
                "    drawn = abs(item.noise.sample(entropy, len(exact)))\n",
            ),
        ),
        "A released number is never below the exact one: a zero proves that there is nobody.",
    ),
    Fault(
        "noise repeats with the process",
        "noise",
        (
            Edit(
                "privacy/entropy.py",
                "Cipher(AES256(os.urandom(32)), CTR(os.urandom(16))).encryptor()",
                "Cipher(AES256(bytes(32)), CTR(bytes(16))).encryptor()",
            ),
        ),
        "Whoever runs dpsql knows the noise of every answer.",
        "noise that is seeded (DESIGN, rule 8)",
    ),
    Fault(
        "groups of one person are shown",
        "noise",
        (
            Edit(
                "release/noise.py",
                "    keep = np.asarray(noisy >= selection.threshold, dtype=bool)",
                "    keep = np.asarray(noisy >= 1, dtype=bool)",
            ),
        ),
        "A value that only one person has is shown, by name.",
        "thresholds without delta",
    ),
    Fault(
        "thresholds are for a thousand times delta",
        "noise",
        (
            Edit(
                "privacy/mechanisms/truncated_geometric.py",
                "    ratio = (1 - q + 2 * delta * q) / (delta * (1 + q))\n",
                "    delta = min(delta * 1000, Fraction(1, 2))\n    ratio = (1 - q + 2 * delta * q) / (delta * (1 + q))\n",
            ),
        ),
        "Groups of few people are shown far more often than delta says.",
    ),
    Fault(
        "a value is chosen by rank alone",
        "noise",
        (
            Edit(
                "release/choose.py",
                "    at = among.starts + item.noise.choose(entropy, among, units)",
                "    at = among.starts + type(item.noise)(item.noise.scale / 1000, 1).choose(entropy, among, units)",
            ),
        ),
        "A median is the exact one, whatever was paid for it.",
    ),
    Fault(
        "groups stand as the engine found them",
        "noise",
        (
            Edit(
                "release/noise.py",
                "    if part.selection is not None:\n        whole = _sorted(whole, len(measurement.keys))\n",
                "    if part.measurement.name == '':\n        whole = _sorted(whole, len(measurement.keys))\n",
            ),
        ),
        "The order of groups follows from the order of rows in the table.",
        "an engine's order (DESIGN, rule 7)",
    ),
    Fault(
        "intervals are half as wide",
        "noise",
        (
            Edit(
                "release/finish.py",
                "found[i] = pa.array(values - width), pa.array(values + width)",
                "found[i] = pa.array(values - width / 2), pa.array(values + width / 2)",
            ),
        ),
        "Decisions are taken on intervals that miss in six of twenty answers.",
    ),
)
