"""What is known, as ``docs/mutants.md`` has it: shares by judge, survivors with what a person said of them, all."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path

from tests.mutation.changes import Change
from tests.mutation.draw import FOLDERS
from tests.mutation.judges import Verdict
from tests.mutation.tree import Tree

JUDGEMENTS = Path(__file__).parent / "judgements.toml"
"""What a person said of survivors: by name of file, line of code and change, so that it outlives other changes."""

_JUDGES = ("unit", "laws", "adversary")
_LONGEST = 60
_NORMAL = 1.96
"""Standard deviations on both sides of 95 percent."""

_HEAD = f"""# Random changes of the code, and who notices them

`make mutants` draws single changes of the code: an operator, a constant, a condition, a statement left out. It takes
them in turn from these folders: {", ".join(f"`{folder}`" for folder in FOLDERS)}.
Each judge tries a change by itself: unit tests (with conformance and golden files), laws, and the adversary. `tests/README.md`
says how.
`python -m tests.mutation report` writes this page; the judgements of survivors are in `tests/mutation/judgements.toml`.

A survivor is a change that no judge noticed. It is *equivalent* if no input shows the change. It is *harmless* if the
change shows in no answer, charge or refusal and breaks no promise of the documentation. It is a *gap* if a test was
missing; that test is named.
"""


def report(
    drawn: Sequence[Change], tree: Tree, verdicts: Sequence[Verdict], judgements: Path
) -> str:
    """The page."""
    note, said = _said(judgements)
    by = {(verdict.name, verdict.judge): verdict for verdict in verdicts}
    tried = [change for change in drawn if _of(change, by)]
    left = [change for change in tried if not any(v.killed for v in _of(change, by))]
    lines = [_HEAD, f"The code is that of commit `{tree.commit}`: {len(tried)} changes.", ""]
    lines += ["| judge | tried | noticed | share of all |", "|---|---|---|---|"]
    for judge in _JUDGES:
        asked, noticed, share = share_of(judge, tried, verdicts)
        lines.append(f"| {judge} | {asked} | {noticed} | {share} |")
    share = f"{len(tried) - len(left)} of {len(tried)}"
    lines += ["", f"{share} are noticed by at least one judge. {note}".rstrip(), ""]
    lines += ["## Survivors", "", "| place | change | judgement |", "|---|---|---|"]
    for change in left:
        lines.append(
            f"| {_place(change)} | {_shown(change, tree)} | {_judgement(change, tree, said)} |"
        )
    lines += [
        "",
        "## All",
        "",
        "`+`: noticed, `-`: not, empty: no test runs it, or it was not asked.",
        "",
    ]
    lines += ["| place | change | unit | laws | adversary |", "|---|---|---|---|---|"]
    for change in tried:
        marks = " | ".join(_mark(by.get((change.name, judge))) for judge in _JUDGES)
        lines.append(f"| {_place(change)} | {_shown(change, tree)} | {marks} |")
    return "\n".join(lines) + "\n"


def share_of(
    judge: str, drawn: Sequence[Change], verdicts: Sequence[Verdict]
) -> tuple[int, int, str]:
    """How many a judge tried and noticed, and which share of all that is, with an interval for a sample.

    All that no other judge noticed are tried; of the others as many as were asked for, by chance.
    Otherwise what was tried is a random sample of all. What no test of a judge runs is not noticed.
    """
    noticed = {v.name for v in verdicts if v.killed and v.judge != judge}
    mine = {v.name: bool(v.killed) for v in verdicts if v.judge == judge}
    others = [c.name for c in drawn if c.name in noticed]
    sample = [mine[name] for name in others if name in mine]
    alone = sum(mine.get(c.name, False) for c in drawn if c.name not in noticed)
    ours = [found for c in drawn if (found := mine.get(c.name)) is not None]
    if not ours:
        return 0, 0, "not tried"
    if others and not sample:
        return len(ours), sum(ours), "no sample of what others notice"
    if len(sample) == len(others):
        return len(ours), sum(ours), f"{sum(ours) / len(ours):.0%}"
    if len(ours) - len(sample) < len(drawn) - len(others):
        low, middle, high = wilson(sum(ours), len(ours))
        return len(ours), sum(ours), f"{middle:.0%} ({low:.0%} to {high:.0%})"
    low, middle, high = (
        (alone + len(others) * part) / len(drawn) for part in wilson(sum(sample), len(sample))
    )
    return len(ours), sum(ours), f"{middle:.0%} ({low:.0%} to {high:.0%})"


def wilson(found: int, tried: int) -> tuple[float, float, float]:
    """A share of a sample, and its interval of 95 percent on both sides."""
    share, z = found / tried, _NORMAL
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z * sqrt(share * (1 - share) / tried + z * z / (4 * tried**2)) / (1 + z * z / tried)
    return max(middle - half, 0.0), share, min(middle + half, 1.0)


def _of(change: Change, by: Mapping[tuple[str, str], Verdict]) -> list[Verdict]:
    return [by[change.name, judge] for judge in _JUDGES if (change.name, judge) in by]


def _said(judgements: Path) -> tuple[str, dict[tuple[str, str, str], str]]:
    """A note on the whole run, and what was said of each survivor."""
    found = tomllib.loads(judgements.read_text("utf-8"))
    by = {(one["file"], one["line"], one["new"]): one["judgement"] for one in found["survivor"]}
    return found.get("note", ""), by


def _judgement(change: Change, tree: Tree, said: Mapping[tuple[str, str, str], str]) -> str:
    line = tree.text(change.path).splitlines()[change.place.line - 1].strip()
    return said.get((Path(change.path).name, line, change.new), "**not judged**").replace(
        "|", "\\|"
    )


def _mark(verdict: Verdict | None) -> str:
    return "" if verdict is None or verdict.killed is None else "+" if verdict.killed else "-"


def _place(change: Change) -> str:
    return f"{change.path.removeprefix('dpsql/')}:{change.place.line}"


def _shown(change: Change, tree: Tree) -> str:
    text = tree.text(change.path)
    start, end = change.place.within(text)
    return f"{_code(text.encode()[start:end].decode())} to {_code(change.new)}"


def _code(text: str) -> str:
    words = " ".join(text.split()).replace("|", "\\|")
    return f"`{words if len(words) <= _LONGEST else words[:_LONGEST] + '...'}`"
