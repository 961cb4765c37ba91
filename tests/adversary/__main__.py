"""``python -m tests.adversary``: see ``run.py``."""

from __future__ import annotations

import sys

from tests.adversary.run import main

sys.exit(main())
