"""Faults that let one client take time and memory from all others."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "the parser's work is not counted",
        "resources",
        (
            Edit(
                "sql/parser.py",
                "    def look_up(_: Dialect) -> object:\n        step(steps)\n",
                "    def look_up(_: Dialect) -> object:\n",
            ),
        ),
        "A statement of 300 bytes keeps a thread busy for ever.",
        "stop 25: the parser could be kept busy for ever",
    ),
    Fault(
        "planning has no limit",
        "resources",
        (Edit("effort.py", "MOST_STEPS = 1_200_000\n", "MOST_STEPS = 10**15\n"),),
        "A statement that is made to be slow is planned for minutes.",
        "issue 13: planning without an end",
    ),
    Fault(
        "comments are read again and again",
        "resources",
        (
            Edit(
                "service/overview.py",
                '    rf"{SPACE}*+(?:(?:describe|desc)(?:{SPACE}++table)?|show',
                '    rf"(?:\\s|--[^\\n]*\\n|/\\*(?:[^*]|\\*(?!/))*\\*/|/\\*.*\\*/)*(?:(?:describe|desc)(?:{SPACE}++table)?|show',
            ),
        ),
        "A few dozen comments before a statement keep a thread busy for ever.",
        "stop 26: SHOW TABLES read comments in exponential time",
    ),
    Fault(
        "texts grow without an end",
        "resources",
        (
            Edit(
                "checks/text_lengths.py",
                "LONGEST = Length(64, 10_000)\n",
                "LONGEST = Length(10**12, 10**12)\n",
            ),
            Edit(
                "checks/text_lengths.py",
                "TOGETHER = Length(300, 30_000)\n",
                "TOGETHER = Length(10**12, 10**12)\n",
            ),
        ),
        "A statement makes an engine hold gigabytes of text for a few rows.",
        "issue 13: lengths of texts",
    ),
    Fault(
        "the data's engine is never stopped",
        "resources",
        (
            Edit(
                "engines/duckdb/engine.py",
                "            with stoppable(cursor.interrupt, self._timeout):\n                yield from self._read(cursor, sql, parameters)\n",
                "            yield from self._read(cursor, sql, parameters)\n",
            ),
        ),
        "A measurement runs past its deadline, and after its client has left.",
        "issue 13: deadlines in every engine",
    ),
    Fault(
        "one log-in takes all threads",
        "resources",
        (
            Edit(
                "serve/lanes.py",
                "        if login is None or (self._running[login] and free <= self.spare):",
                "        if login is None:",
            ),
            Edit(
                "serve/lanes.py",
                "        login = min(waiting, key=lambda login: self._running[login], default=None)",
                "        login = next(iter(waiting), None)",
            ),
        ),
        "A client with many statements keeps all others waiting.",
        "issue 13: fair lanes",
    ),
    Fault(
        "connections that say nothing stay",
        "resources",
        (
            Edit(
                "serve/newcomers.py",
                "        if crowded or len(self) >= self.most:",
                "        if crowded and len(self) < 0:",
            ),
        ),
        "Connections that never log in take every place.",
        "stop 10: connection places before log-in",
    ),
    Fault(
        "bodies of HTTP have no limit",
        "resources",
        (
            Edit(
                "serve/http/bodies.py",
                "            if len(body) > LARGEST_BODY:",
                "            if len(body) < 0:",
            ),
            Edit(
                "serve/http/bodies.py",
                "            if len(body) > FEW:\n",
                "            if len(body) < 0:\n",
            ),
        ),
        "One request takes as much memory as its client likes.",
        "issue 13: unbounded memory",
    ),
    Fault(
        "answers of the catalog have no limit",
        "resources",
        (
            Edit(
                "engines/catalog/content.py",
                "    bytes: int = 32_000_000\n    rows: int = 1_000_000\n",
                "    bytes: int = 32_000_000_000\n    rows: int = 1_000_000_000\n",
            ),
            Edit(
                "engines/catalog/content.py",
                "    value: int = 4_000_000\n",
                "    value: int = 4_000_000_000\n",
            ),
        ),
        "A catalog query takes memory and time from all other sessions.",
        "stop 24: one catalog statement with an answer of 192 MB holds up all sessions",
    ),
    Fault(
        "what clients hold is not counted",
        "resources",
        (
            Edit(
                "memory/pool.py",
                "            if more > 0 and not self._fits(more, hold.owner):",
                "            if more > self.most * 10**6:",
            ),
        ),
        "Prepared statements and results of one client take all memory.",
        "issue 13: one memory budget",
    ),
)
