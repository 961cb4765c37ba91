"""What the adversary knows after so many attacks, in a folder: it goes on from there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.adversary import seeds
from tests.adversary.learn import words
from tests.adversary.model import Case
from tests.adversary.seeds import Seed

MANY = 10
"""New steps between lines that make an attack worth keeping; a new word does so alone."""


@dataclass
class State:
    """What is known after so many attacks."""

    folder: Path
    seed: str = ""
    """Begins the names of attacks: others with another seed."""
    next: int = 0
    replayed: int = 0
    """How many of the repository's seeds were repeated: they come in turn with new attacks."""
    given: int = 0
    """How many these are."""
    reached: set[str] = field(default_factory=set)
    pool: list[Seed] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)
    """Findings by what they say."""

    @classmethod
    def load(cls, folder: Path, seed: str = "") -> State:
        """Go on from a folder; begin if it is empty."""
        folder.mkdir(parents=True, exist_ok=True)
        given = list(seeds.load(seeds.FOLDER))
        pool = [*given, *seeds.load(folder / "seeds")]
        state = cls(folder, seed, given=len(given), pool=pool)
        path = folder / "state.json"
        if path.exists():
            known = json.loads(path.read_text())
            state.next, state.reached = known["next"], set(known["reached"])
            state.replayed, state.found = known["replayed"], known["found"]
        return state

    def save(self) -> None:
        """Write what is known, all of it or nothing."""
        new = self.folder / "state.new"
        known = {
            "next": self.next, "replayed": self.replayed, "reached": sorted(self.reached),
            "found": self.found,
        }  # fmt: skip
        new.write_text(json.dumps(known, indent=1))
        new.replace(self.folder / "state.json")

    def keep(self, seed: Seed, case: Case, arcs: set[str]) -> int:
        """Keep the attack as a seed if it reached something new; how much that is."""
        news = {f"arc {arc}" for arc in arcs} - self.reached
        last = 0
        for number, transcript in enumerate(case.left.transcripts):
            said = words(transcript) - self.reached
            if said:
                news, last = news | said, number
        if not news:
            return 0
        self.reached |= news
        if seed in self.pool:
            return len(news)
        said = sorted(word for word in news if not word.startswith("arc "))
        if said or len(news) > MANY:
            last = last or len(seed.steps) - 1
            kept = replace(seeds.small(seed), steps=seed.steps[: last + 1])
            kept = replace(kept, reached=tuple(said[:20]))
            self.pool.append(kept)
            (self.folder / "seeds").mkdir(exist_ok=True)
            path = self.folder / "seeds" / f"{self.next:06}.json"
            path.write_text(seeds.to_json(kept), encoding="utf-8")
        return len(news)
