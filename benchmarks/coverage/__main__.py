"""How much of what people ask is answered. Run: python -m benchmarks.coverage --help"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.coverage.corpus import CORPORA
from benchmarks.coverage.outcome import opened
from benchmarks.coverage.report import as_json, details, table


def main() -> None:
    arguments = argparse.ArgumentParser(prog="benchmarks.coverage", description=__doc__)
    arguments.add_argument("names", nargs="*", help="corpora, or queries by how they begin")
    arguments.add_argument("--small", action="store_true", help="the scale of the tests")
    arguments.add_argument("--json", type=Path, help="write everything to this file")
    arguments.add_argument("--data", type=Path, help="keep the data sets in this folder")
    given = arguments.parse_args()
    known = {corpus.name for corpus in CORPORA}
    chosen = [c for c in CORPORA if c.name in given.names or not known & set(given.names)]
    begins = tuple(n for n in given.names if n not in known) or ("",)
    if given.data is not None:
        given.data.mkdir(parents=True, exist_ok=True)
    found = {}
    for corpus in chosen:
        with opened(corpus, corpus.small if given.small else corpus.large, given.data) as asked:
            asking = [q for q in corpus.queries if q.name.startswith(begins)]
            found[corpus.name] = [asked.outcome(q) for q in asking]
    kept = [corpus for corpus in chosen if found[corpus.name]]
    print(table(kept, found), details(kept, found), sep="\n\n")
    if given.json is not None:
        given.json.write_text(as_json(found))


if __name__ == "__main__":
    main()
