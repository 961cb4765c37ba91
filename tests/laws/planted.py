"""Faults for the self-test to notice: each is what somebody may get wrong, and where it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.daily import NIGHTLY
from support.measured import flat

from dpsql import pipeline
from dpsql.bound import norm_clip, rows, sensitivity
from dpsql.engines import verify as looked_up
from dpsql.engines.duckdb import statements
from dpsql.engines.duckdb.guard import Guard
from dpsql.engines.facts import Facts
from dpsql.ir.statements import Alias, Name, Number, Query, Select, TableRows
from dpsql.ledger.tables import TableLedger
from dpsql.policy.model import Table
from dpsql.price import price, search
from dpsql.price.request import Request
from dpsql.privacy.cost import Cost
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.release import choose, lookups, noise
from dpsql.release.finish import finish
from dpsql.reuse.match import match_nothing
from dpsql.reuse.refined import Refined
from dpsql.rewrite import shortcut
from dpsql.selftest import scenarios as s
from dpsql.selftest.scenarios import Scenario
from dpsql.sql.bind import join_rules

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Planted:
    """A fault, and the question about a scenario that shows it in so many samples a side."""

    name: str
    patch: Callable[[Patch], None]
    question: str
    scenario: Scenario
    samples: int = 10_000
    caught: str = "more than the charge"
    """What the finding must say: other answers than these mean that the fault itself is broken."""

    def __str__(self) -> str:
        return self.name


def scaled(factor: Fraction) -> Callable[[Patch], None]:
    """Noise that is narrower than priced."""

    def patch(change: Patch) -> None:
        real = price._noise

        def narrow(*args: Any) -> Any:
            honest = real(*args)
            if isinstance(honest, DiscreteLaplace):
                return DiscreteLaplace(honest.scale * factor)
            return DiscreteGaussian(honest.variance * factor**2)

        change.setattr(price, "_noise", narrow)

    return patch


def written(pattern: str, new: str, count: int = 0) -> Callable[[Patch], None]:
    """A statement that is written wrongly, and that nothing reads a second time."""

    def patch(change: Patch) -> None:
        real = statements.write

        def wrong(query: Query) -> str:
            text = flat(real(query))
            changed = re.sub(pattern, new, text, count=count)
            assert changed != text, f"the fault must change something: {text}"
            return changed

        change.setattr(statements, "write", wrong)
        change.setattr(shortcut, "_summed", lambda _: False)  # no other statement stands in for it
        change.setattr(Guard, "check", lambda *_, **__: None)

    return patch


def believed(change: Patch) -> None:
    """Whatever is declared is taken for what the data keeps, by the second check too."""
    change.setattr(Facts, "hold", lambda *_: True)


def listed_values(change: Patch) -> None:
    """A person is taken to have no other values than those that are declared, also in a copy."""
    real = sensitivity.count_pairs

    def few(statistic: Any, bounding: Any) -> int:
        return min(real(statistic, bounding), sensitivity._options(statistic) * bounding.groups)

    change.setattr(sensitivity, "count_pairs", few)


def forgotten(change: Patch) -> None:
    """Nothing is kept of units with more rows than declared."""
    real = looked_up.over_limit_rows

    def none(table: Table) -> TableRows:
        rows = real(table)
        columns = tuple((name, Name(name)) for name, _ in rows.columns)
        return replace(rows, query=Select(Alias(rows.query, "r"), columns, limit=0))

    change.setattr(looked_up, "over_limit_rows", none)


def threshold(change_by: int) -> Callable[[Patch], None]:
    def patch(change: Patch) -> None:
        real = price._selection

        def lower(*args: Any) -> Any:
            honest = real(*args)
            return replace(honest, threshold=honest.threshold - change_by)

        change.setattr(price, "_selection", lower)

    return patch


def drawn(change_noise: Callable[[Any], Any]) -> Callable[[Patch], None]:
    def patch(change: Patch) -> None:
        for law in (DiscreteLaplace, DiscreteGaussian):
            real = law.sample
            change.setattr(
                law, "sample", lambda s, e, n, real=real: np.asarray(change_noise(real(s, e, n)))
            )

    return patch


def uncentred(change: Patch) -> None:
    real = rows.steps_of
    change.setattr(rows, "steps_of", lambda total, at: real(total, replace(at, centre=0)))


def greedy(change: Patch) -> None:
    """Noise for twice the epsilon that the ledger is told of."""
    real, cost = price._shares, price.cost_of

    def shares(plan: Any, request: Any) -> Any:
        for share in real(plan, request):
            rho = None if share.rho is None else 4 * share.rho
            yield replace(share, label=2 * share.label, rho=rho)

    def told(parts: Any, share: Any) -> Cost:
        rho = None if share.rho is None else share.rho / 4
        return cost(parts, replace(share, label=share.label / 2, rho=rho))

    change.setattr(price, "_shares", shares)
    change.setattr(price, "cost_of", told)


def once_for_all(change: Patch) -> None:
    """Each of several measurements is noised as if it were the only one."""
    real = price._shares
    change.setattr(
        price, "_shares", lambda plan, r: real(replace(plan, measurements=plan.measurements[:1]), r)
    )


def halves_unnoised(change: Patch) -> None:
    """The total and the count under an average are exact."""
    real = noise.add_noise

    def added(exact: Any, item: Any, entropy: Any) -> Any:
        return exact if item.halves is not None else real(exact, item, entropy)

    change.setattr(noise, "add_noise", added)


def first_unnoised(change: Patch) -> None:
    """The first of two phases hands its exact numbers to the second."""
    real = noise._noised

    def noised(table: Any, part: Any, entropy: Any) -> Any:
        if part.measurement.name != "m0":
            return real(table, part, entropy)
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(noise, "add_noise", lambda exact, *_: exact)
            return real(table, part, entropy)

    change.setattr(noise, "_noised", noised)


def float_noise(change: Patch) -> None:
    """Textbook noise in floating point, added to the value itself."""
    change.setattr(noise, "add_noise", lambda exact, *_: exact)
    real = noise.decode_steps

    def decoded(exact: Any, item: Any) -> Any:
        values = np.asarray(real(exact, item))
        raw = np.frombuffer(__import__("os").urandom(8 * len(values)), dtype=np.uint64)
        share = (raw.astype(np.float64) + 0.5) / 2.0**64 - 0.5
        scale = float(item.noise.scale) * float(item.step)
        return pa.array(values - scale * np.sign(share) * np.log(1 - 2 * np.abs(share)))

    change.setattr(noise, "decode_steps", decoded)


def gaussian_for_laplace(change: Patch) -> None:
    """Noise of another law, as wide as that which was priced."""
    real = DiscreteLaplace.sample

    def other(law: DiscreteLaplace, entropy: Any, count: int) -> Any:
        assert callable(real)
        variance = Fraction(law.standard_deviation() ** 2).limit_denominator(10**6)
        return DiscreteGaussian(variance).sample(entropy, count)

    change.setattr(DiscreteLaplace, "sample", other)


def shared_noise(change: Patch) -> None:
    """One draw of noise for all groups of an answer."""
    drawn(lambda values: np.repeat(values[:1], len(values)))(change)


def unpaid(change: Patch) -> None:
    real = TableLedger.reserve
    change.setattr(
        TableLedger, "reserve", lambda self, accounts, cost, *rest, **named: real(
            self, accounts, Cost.zero(), *rest, **named
        )
    )  # fmt: skip


def half_paid(change: Patch) -> None:
    """An account is told of half of what was spent."""
    real = TableLedger.reserve

    def reserve(self: Any, accounts: Any, cost: Cost, *rest: Any, **named: Any) -> Any:
        half = replace(cost, epsilon=cost.epsilon / 2, rho=cost.rho / 4)
        return real(self, accounts, half, *rest, **named)

    change.setattr(TableLedger, "reserve", reserve)


def replayed(change: Patch) -> None:
    """What is recalled has fresh noise, which nobody pays."""

    def recall(cached: Any, sources: Any, tools: Any, *, intervals: bool) -> Any:
        whole = match_nothing(cached.priced, cached.pieces)
        parts = [d.priced for d in whole.due.parts]
        statements = [pipeline.admit_part(part, tools) for part in parts]
        public = pipeline.read_public_tables(cached.priced, tools.reader, tools.postprocessor)
        noisy = pipeline.measure(parts, statements, public, tools)
        release = finish(cached.priced, noisy, tools.finishing, intervals=intervals)
        return pipeline.Answer(release, Cost.zero(), recalled=True)

    change.setattr(pipeline, "_recall", recall)


def refined_for_free(change: Patch) -> None:
    """More accuracy than before is measured, and not charged."""
    real = pipeline.admit_sources

    def admit_sources(priced: Any, sources: Any, tools: Any) -> Any:
        sources, statements = real(priced, sources, tools)
        if any(isinstance(source, Refined) for source in sources.pieces):
            sources = replace(sources, due=replace(sources.due, cost=Cost.zero()))
        return sources, statements

    change.setattr(pipeline, "admit_sources", admit_sources)


def one_row_after_a_left_join(change: Patch) -> None:
    """An outer join is taken for one that keeps a row of each unit a single one."""
    real = join_rules.privacy.join_privacy

    def joined(kind: str, left: Any, right: Any, *rest: Any) -> Any:
        found = real(kind, left, right, *rest)
        return replace(found, max_rows=left.max_rows) if kind == "left" else found

    change.setattr(join_rules.privacy, "join_privacy", joined)


def lone_households(change: Patch) -> None:
    change.setattr(Request, "size", lambda *_: 1)


def sure_choice(change: Patch) -> None:
    """Utilities ten times as far apart as priced."""
    real = choose.utilities

    def steep(*args: Any) -> Any:
        ranks, units = real(*args)
        return ranks * 10, units

    change.setattr(choose, "utilities", steep)


def sure_search(change: Patch) -> None:
    """The bound that a search finds is the very rung of the largest unit."""
    real = search._with_prior

    def steep(*args: Any) -> Any:
        found = real(*args)
        [part] = found.parts
        [item] = part.noised
        law = replace(item.noise, scale=item.noise.scale / 10**4)
        return replace(found, parts=(replace(part, noised=(replace(item, noise=law),)),))

    change.setattr(search, "_with_prior", steep)


def unlisted_keys(change: Patch) -> None:
    """Keys beyond what is declared are groups of their own."""
    real = statements.write

    def wrong(query: Query) -> str:
        text = flat(real(query)).replace(
            "SELECT c.k0, c.k1,", "SELECT coalesce(c.k0, a.k0) AS k0, coalesce(c.k1, a.k1) AS k1,"
        )
        assert "LEFT JOIN (" in text
        order = " ORDER BY 1 ASC NULLS LAST, 2 ASC NULLS LAST"
        return re.sub(r" ORDER BY c.k0[^()]*$", order, text.replace("LEFT JOIN (", "FULL JOIN ("))

    change.setattr(statements, "write", wrong)
    change.setattr(shortcut, "_summed", lambda _: False)  # no other statement stands in for it
    change.setattr(noise, "_expect", lambda *_: None)
    change.setattr(Guard, "check", lambda *_, **__: None)


def all_shown(change: Patch) -> None:
    change.setattr(noise, "_selected", lambda table, *_: (table, None))


def exact_units(change: Patch) -> None:
    """Groups are kept by their true number of units."""

    def selected(table: Any, *_: Any) -> Any:
        units = noise.integers(table.column("units"))
        return table.filter(pa.array(units >= 3)), units[units >= 3]

    change.setattr(noise, "_selected", selected)


def by_true_units(least: int) -> Callable[[Patch], None]:
    """Public groups take part by their true number of units: with one, where any has rows."""

    def patch(change: Patch) -> None:
        real, added = noise._noised_part, noise.add_noise

        def noised(table: Any, part: Any, entropy: Any) -> Any:
            count = part.measurement.unit_count
            units = None if count is None else part.noised[count.position]
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(
                    noise, "add_noise", lambda n, item, e: n if item is units else added(n, item, e)
                )
                return real(table, part, entropy)

        change.setattr(lookups, "least_units", lambda *_: least)
        change.setattr(noise, "_noised_part", noised)

    return patch


def backwards(change: Patch) -> None:
    real = noise._noised

    def turned(*args: Any) -> Any:
        rows = real(*args)
        return replace(rows, table=rows.table.take(list(range(rows.table.num_rows))[::-1]))

    change.setattr(noise, "_noised", turned)


def as_the_engine_has_them(change: Patch) -> None:
    """Groups that were selected are not sorted."""
    change.setattr(noise, "_sorted", lambda table, _: table)


def no_norm(change: Patch) -> None:
    change.setattr(norm_clip, "factor", lambda bounding, _, bits: Number(1 << bits))
    change.setattr(Guard, "check", lambda *_, **__: None)


HIDDEN, SEVERAL = "COUNT(*) of hidden groups, truncated", "several hidden groups, truncated"
UNLIMITED = r" WHERE (place <= \d+|CAST\(hash\([^()]*\) >> \d+ AS BIGINT\) <= reach)"
WEIGHED, CAPPED = "COUNT(*) by row weights", "COUNT(*) in one group of many"
MADE_OF = "what AVG(y) is made of"
PLANTED = (
    Planted("noise of four fifths the scale", scaled(Fraction(4, 5)), "semi join", s.TWICE, 100_000),
    Planted("noise of half the scale", scaled(Fraction(1, 2)), "COUNT(*)", s.TWICE),
    Planted("sums with noise of half the scale", scaled(Fraction(1, 2)), "SUM(x)", s.TWICE),
    Planted("Gaussian noise of half the deviation", scaled(Fraction(1, 2)), "COUNT(*) of people, gaussian", s.TWICE, 60_000),
    Planted("no noise", drawn(lambda values: values * 0), "COUNT(*)", s.EMPTY, 2_000),
    Planted("noise that groups share", shared_noise, "COUNT(*) less another, laplace", s.BESIDE),
    Planted("noise of one sign", drawn(abs), "COUNT(*)", s.EMPTY),
    Planted("noise that is cut", drawn(lambda values: np.clip(values, -3 << 20, 3 << 20)), "COUNT(*)", s.TWICE),
    Planted("noise of another law", gaussian_for_laplace, "COUNT(*) of people", s.ALONE, 100_000),
    Planted("noise in floating point", float_noise, "SUM(x)", s.TWICE),
    Planted("heavy units are not found", written(r"HAVING count\(\*\) > 4", "HAVING count(*) > 99"), WEIGHED, s.TWICE),
    Planted("heavy units that are not looked for", believed, WEIGHED, s.TWICE),
    Planted("heavy units whose rows are not kept", forgotten, WEIGHED, s.TWICE),
    Planted("values that are taken for declared ones", believed, "SUM(n)", s.ABOVE, 2_000),
    Planted("weights that forget to divide", written(r"// count\(\*\) AS weight", "// 1 AS weight"), WEIGHED, s.TWICE),
    Planted("units without a key are not weighed", written(r'WHERE TRY_CAST\(t1."dpsql_person" AS BIGINT\) IS NOT NULL', "WHERE TRUE"), WEIGHED, s.KEYLESS),
    Planted("rows of nobody are counted", written(r'WHERE TRY_CAST\(t1."dpsql_person" AS BIGINT\) IS NOT NULL', "WHERE TRUE"), "COUNT(*) of units without a table", s.KEYLESS),
    Planted("a prepared copy that is read whole", written(r'"dpsql rank" <= 4', '"dpsql rank" <= 99'), "COUNT(*) by prepared rows", s.TWICE),
    Planted("declared values that bound a copy", listed_values, "COUNT(DISTINCT kind) of everybody in a copy", s.UNLISTED, 400),
    Planted("a forgotten cap of a group", written(r"least\(s0, 2\)", "s0"), "COUNT(*) of one group", s.TWICE),
    Planted("groups of a unit without a limit", written(UNLIMITED, ""), CAPPED, s.SPREAD, 40_000),
    Planted("hidden groups of a unit without a limit", written(UNLIMITED, ""), SEVERAL, s.SPREAD, 20_000),
    Planted("a norm that is not clipped", no_norm, "COUNT(*) by norm clip", s.TWICE, 40_000),
    Planted("weights of groups that forget to divide", written(r"\* min\(weight\)", "* 1048576"), "COUNT(*) by weights and groups", s.TWICE, 20_000),
    Planted("a total of everybody without a cap", written(r"least\(s0, 64\)", "s0"), "COUNT(*) of triples of everybody", s.TWICE, 200),
    Planted("a search that does not doubt", sure_search, "COUNT(*) after a search", s.TWICE, 600 if NIGHTLY else 250),
    Planted("levels that add up to exact ones", first_unnoised, "levels that add up", s.EMPTY),
    Planted("a clamp skipped on a key column", unlisted_keys, "what is beyond a key, n", s.ABOVE, 2_000),
    Planted("sums of unclamped values", written(r"CASE WHEN x0 .*? END AS v0", "x0 AS v0"), "SUM(n)", s.ABOVE, 2_000),
    Planted("a cast that fails on a row", written(r'TRY_CAST\(t1."x" AS DOUBLE\)', 'CAST(CAST(CAST(t1."x" AS VARCHAR) AS DECIMAL(18, 2)) AS DOUBLE)'), "SUM(x)", s.ABOVE, 2_000, caught="the engine failed"),
    Planted("empty groups are left out", written(r"LEFT JOIN \(", "JOIN ("), "COUNT(*)", s.EMPTY, 2_000, caught="the engine failed"),
    Planted("empty groups are NULL", written(r"coalesce\(a.p0, 0\)", "a.p0"), "COUNT(*)", s.EMPTY, 2_000, caught="the engine failed"),
    Planted("DISTINCT that is dropped", written(r"CAST\(count\(\*\) > 0 AS BIGINT\)", "count(*)"), "COUNT(DISTINCT dpsql_person)", s.TWICE, 20_000),
    Planted("a threshold two too low", threshold(2), HIDDEN, s.ALONE),
    Planted("a Gaussian threshold three too low", threshold(3), "people of hidden groups, Gaussian", s.ALONE, 20_000),
    Planted("no threshold", all_shown, HIDDEN, s.ALONE),
    Planted("a threshold of rows instead of units", written(r"count\(\*\) AS units", "CAST(coalesce(sum(s0), 0) AS BIGINT) AS units"), HIDDEN, s.TWICE),
    Planted("a threshold without noise", exact_units, HIDDEN, s.TWICE),
    Planted("groups without rows left out", by_true_units(1), "SUM(x) of groups with enough units, laplace", s.EMPTY, 2_000),
    Planted("groups with few units left out by their true number", by_true_units(13), "MAX above groups with enough units, laplace", s.CROWD, 2_000),
    Planted("an average that is not centred, priced as one that is", uncentred, MADE_OF, s.CROWD, 100_000),
    Planted("exact halves under an average", halves_unnoised, MADE_OF, s.CROWD),
    Planted("twice the epsilon that is charged", greedy, "COUNT(*)", s.TWICE),
    Planted("a median that is too sure", sure_choice, "MEDIAN(x)", s.TWICE, 20_000),
    Planted("an extreme that is too sure", sure_choice, "MAX(n)", s.TWICE, 20_000),
    Planted("a mode that is too sure", sure_choice, "MODE(kind)", s.TWICE, 20_000),
    Planted("an answer that is not paid", unpaid, "COUNT(*)", s.TWICE),
    Planted("an answer that is half paid", half_paid, "COUNT(*)", s.TWICE, 20_000),
    Planted("a recalled answer with fresh noise", replayed, "COUNT(*) asked again, laplace", s.TWICE, 40_000),
    Planted("a refined answer that is not paid", refined_for_free, "COUNT(*) refined, laplace", s.TWICE),
    Planted("a cap forgotten in a left join", one_row_after_a_left_join, "left join", s.TWICE),
    Planted("two phases that hand on an exact number", first_unnoised, "two phases by a join", s.CROWD),
    Planted("two phases that hand on an exact list", first_unnoised, "two phases by a list", s.CROWD),
    Planted("levels that are priced once", once_for_all, "ROLLUP of units", s.EMPTY, 20_000),
    Planted("households that count as one", lone_households, "COUNT(*) of homes", s.EMPTY, 20_000),
    Planted("rows in the opposite order", backwards, "COUNT(*)", s.EMPTY, 2_000, caught="not in the order of their keys"),
    Planted("hidden groups as the engine has them", as_the_engine_has_them, HIDDEN, s.CROWD, 2_000, caught="not in the order of their keys"),
)  # fmt: skip
