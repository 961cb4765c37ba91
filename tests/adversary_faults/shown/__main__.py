"""``python -m tests.adversary_faults.shown NAME``: 1 if the fault shows in the package on the path, else 0."""

from __future__ import annotations

import os
import sys

from tests.adversary_faults.shown.every import SHOWS

if __name__ == "__main__":
    seen = SHOWS[sys.argv[1]]()
    print("seen" if seen else "not seen", flush=True)
    os._exit(int(seen))  # a statement that does not end is not waited for
