"""``python -m tests.adversary.pinned serve ..``: dpsql's command, in which nothing exact is released.

Every measured integer is replaced by the same number, and noise is made of the same bytes each time.
So two endpoints over neighbouring databases must say the same, to the last bit.
"""

from __future__ import annotations

import runpy
import sys

from tests.adversary.seams import constant

if __name__ == "__main__":
    sys.argv[0] = "dpsql"
    with constant():
        runpy.run_module("dpsql", run_name="__main__", alter_sys=True)
