"""TPC-H and ClickBench's shape: every answered query beside plain DuckDB, and their geometric mean.

python -m benchmarks.corpora [tpch] [clickbench] [--scale 1 10] [--hits 10000000] [--only q01 ..]
                             [--epsilon 1] [--prepared] [--data DIR] [--out DIR]

Queries, policies and data are those of ``benchmarks.coverage``, where every answer is compared with
plain SQL's; here they are asked at an epsilon that people use.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.coverage.corpus import CORPORA, Corpus, Query
from benchmarks.tables import plain, served
from benchmarks.turns import Report, in_turns, options, places
from dpsql.diagnostics.refusal import Refused
from dpsql.service import Service, Session

GOALS = {("tpch", False): 2.0, ("tpch", True): 1.2}
"""Without copies of tables, and with them."""
DELTA = "1e-8"
"""Of each query: the corpora's budgets of a day are enough for ten thousand."""


@contextmanager
def opened(corpus: Corpus, scale: float, kept: Path | None, *, prepared: bool) -> Iterator[Service]:
    """The corpus at a scale."""
    with places(kept) as (folder, place):
        database = folder / f"{corpus.name}-{scale:g}.duckdb"
        if not database.exists():
            made = database.with_suffix(".part")
            made.unlink(missing_ok=True)
            corpus.make(made, scale)
            made.rename(database)
        (place / f"{corpus.name}.duckdb").symlink_to(database)
        policy = place / "policy.yaml"
        policy.write_text((corpus.folder / "policy.yaml").read_text())
        with served(policy, prepared=prepared) as service:
            yield service


def sides(
    service: Service, session: Session, query: Query
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Plain SQL with the same answer, and dpsql."""
    other = plain(service)
    return (
        lambda: other.sql(query.plain).to_arrow_table(),
        lambda: session.execute(query.sql),
    )


def measured(
    corpus: Corpus, scale: float, service: Service, report: Report,
    asked: Sequence[Query], epsilon: str, repeat: int,
) -> None:  # fmt: skip
    """A line for each query that is answered, and the geometric mean of all."""
    session = service.session()
    session.execute("SET dpsql.fresh = on")
    session.execute(f"SET dpsql.epsilon = {epsilon}")
    session.execute(f"SET dpsql.delta = {DELTA}")
    found, refused = [], []
    for query in asked:
        try:
            session.prepare(query.sql)
        except Refused as because:
            refused.append(f"{query.name.split()[0]} {because.first.code}")
            continue
        name = f"{corpus.title} {scale:g}: {query.name}"
        figure = in_turns(name, int(scale), sides(service, session, query), repeat)
        found.append(figure)
        report.add(figure)
    title = f"{corpus.title} {scale:g}"
    for kind in ("wall", "cpu"):
        middles = [getattr(f, kind).median for f in found]
        mean = statistics.geometric_mean(middles)
        goal = GOALS.get((corpus.name, bool(service.shelf.copies)))
        said = f"{mean:.2f}x of {len(found)} queries" + (f", goal {goal:g}x" if goal else "")
        report.note(f"{title}: geometric mean, {kind}", said)
    whole = sum(f.dpsql_ms for f in found) / sum(f.plain_ms for f in found)
    report.note(f"{title}: all together, wall", f"{whole:.2f}x")
    report.note(f"{title}: refused", ", ".join(refused) or "none")


def main() -> None:
    """Ask the corpora that are named; both if none is."""
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", help="tpch, clickbench")
    parser.add_argument("--scale", type=float, nargs="+", default=[1], help="of TPC-H")
    parser.add_argument("--hits", type=float, nargs="+", default=[1_000_000], help="of ClickBench")
    parser.add_argument("--only", nargs="+", default=[""], help="queries by how they begin")
    parser.add_argument("--epsilon", default="1", help="of each query")
    parser.add_argument("--prepared", action="store_true", help="with copies of all tables")
    chosen = parser.parse_args()
    report = Report("corpora-prepared" if chosen.prepared else "corpora", chosen.out)
    for corpus in CORPORA:
        if corpus.name not in (chosen.names or ("tpch", "clickbench")):
            continue
        asked = [q for q in corpus.queries if q.name.startswith(tuple(chosen.only))]
        for scale in chosen.scale if corpus.name == "tpch" else chosen.hits:
            with opened(corpus, scale, chosen.data, prepared=chosen.prepared) as service:
                measured(corpus, scale, service, report, asked, chosen.epsilon, chosen.repeat)
    report.close()


if __name__ == "__main__":
    main()
