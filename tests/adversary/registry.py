"""Which faces and judges there are: a new one is added here, and takes part in every attack."""

from __future__ import annotations

from tests.adversary.judges.alone import Alone
from tests.adversary.judges.choices import Choices
from tests.adversary.judges.defects import Defects
from tests.adversary.judges.labels import Labels
from tests.adversary.judges.movement import Movement
from tests.adversary.judges.noise import Noise
from tests.adversary.judges.oracle import Oracle
from tests.adversary.judges.released import Released
from tests.adversary.judges.replaced import Replaced
from tests.adversary.judges.sameness import Sameness
from tests.adversary.judges.selection import Selection
from tests.adversary.model import Face, Judge
from tests.adversary.watched import Inside

FACES: tuple[type[Face], ...] = (Inside,)
"""Ways to dpsql. The first is in this process, and the only one with seams."""
JUDGES: tuple[Judge, ...] = (
    Sameness(),
    Labels(),
    Movement(),
    Alone(),
    Noise(),
    Released(),
    Replaced(),
    Selection(),
    Choices(),
    Oracle(),
    Defects(),
)
