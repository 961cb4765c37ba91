"""``python -m dpsql`` is the command line."""

from __future__ import annotations

import sys

from dpsql.cli import main

sys.exit(main())
