"""What PLD composition inside one query would save, beside what is charged: a table.

python benchmarks/composition.py

A query's statistics get equal shares of its epsilon. Columns: the epsilon that the same noise is
worth at a delta, as a share of what is charged, by the privacy loss distributions of dp-accounting.
It is below 1 only for queries of very many statistics, and only if they spend a delta that they
otherwise do not need; accounts in zCDP gain nothing, since it is rho that they add up.
"""

from __future__ import annotations

from fractions import Fraction

from dp_accounting.pld import privacy_loss_distribution as pld

from dpsql.privacy.accounting import gaussian_rho_for_query

DELTAS = (1e-8, 1e-6)
STATISTICS = (1, 2, 5, 10, 20, 40)


def laplace(epsilon: float, statistics: int) -> list[float]:
    each = epsilon / statistics
    one = pld.from_laplace_mechanism(1 / each, value_discretization_interval=each / 20)
    together = one.self_compose(statistics)
    return [together.get_epsilon_for_delta(delta) / epsilon for delta in DELTAS]


def gaussian(epsilon: float, delta: float) -> float:
    rho = gaussian_rho_for_query(Fraction(epsilon), Fraction(delta))
    deviation = float(1 / (2 * rho)) ** 0.5
    curve = pld.from_gaussian_mechanism(deviation, value_discretization_interval=epsilon / 1000)
    return curve.get_epsilon_for_delta(delta) / epsilon


def main() -> None:
    print(
        f"{'noise':10} {'epsilon':>8} {'statistics':>11} " + "".join(f"{d:>10.0e}" for d in DELTAS)
    )
    for epsilon in (0.1, 1.0):
        for statistics in STATISTICS:
            shares = "".join(f"{share:10.3f}" for share in laplace(epsilon, statistics))
            print(f"{'laplace':10} {epsilon:8} {statistics:11} {shares}")
        shares = "".join(f"{gaussian(epsilon, delta):10.3f}" for delta in DELTAS)
        print(f"{'gaussian':10} {epsilon:8} {'any':>11} {shares}")


if __name__ == "__main__":
    main()
