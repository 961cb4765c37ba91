"""No byte of an answer, a log or a metric holds a mark (see ``canaries.py``)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

from tests.adversary.canaries import MARKS
from tests.adversary.faces.session import is_absent
from tests.adversary.model import Case, Finding, finding

ALLOWED = {("log", "application")}
"""What an operator's log is for: clients name their applications to it."""
AROUND = 60


def spellings(word: str) -> Iterator[bytes]:
    """A word in the forms in which bytes travel: as it is, in hexadecimal, in base64, wide."""
    plain = word.encode()
    yield plain
    yield plain.hex().encode()
    yield word.encode("utf-16-le")
    yield word[::-1].encode()
    for shift in range(3):
        inner = base64.b64encode(b"\0" * shift + plain)
        yield inner[4 if shift else 0 : -4]


_FORMS = {place: [s.lower() for s in spellings(word)] for place, word in MARKS.items()}
_ANY = re.compile(b"|".join(re.escape(form) for forms in _FORMS.values() for form in forms))


def leaks(heard: Mapping[str, bytes]) -> Iterator[tuple[str, str, str]]:
    """Source, place of the mark, and what stands around it."""
    for source, body in heard.items():
        small = body.lower()
        for match in _ANY.finditer(small):
            place = next(p for p, forms in _FORMS.items() if match.group() in forms)
            if (source, place) not in ALLOWED:
                around = body[max(match.start() - AROUND, 0) : match.end() + AROUND]
                yield source, place, around.decode(errors="replace")


ENGINE = re.compile(
    r"\b(duckdb_\w+|read_\w+|parquet_\w+|sniff_csv|glob|getenv|pg_read_file|pragma_\w+)\s*\(|'/\w",
    re.IGNORECASE,
)
"""What is the engine's own: its functions, and files."""


QUALIFIED = re.compile(r"(?<![.\w])\"?(main|system)\"?\.\w+\s*\(", re.IGNORECASE)
"""A function of a schema that PostgreSQL does not have."""
UNSUPPORTED = "0A000"


class Closed:
    """Nothing that is the engine's own is answered, whether it tells something or not.

    A name that PostgreSQL does not have is refused as such, and not tried.
    """

    name = "closed"

    def judge(self, case: Case) -> Finding | None:
        """The first statement that reached the engine."""
        for number, told in enumerate(case.left.transcripts):
            if told.rows and not is_absent(told) and ENGINE.search(told.step.text):
                meaning = "what is the engine's own is answered"
                return finding(self.name, case, number, meaning, [repr(told.rows[:3])[:400]])
            tried = told.error is not None and told.error.code == UNSUPPORTED
            if tried and QUALIFIED.search(told.step.text):
                meaning = "a name of the engine's own is tried"
                return finding(self.name, case, number, meaning, [repr(told.error)])
        return None


class Canaries:
    """Looks at transcripts; what else was heard is given to ``leaks`` by the attack."""

    name = "canaries"

    def judge(self, case: Case) -> Finding | None:
        """The first transcript that holds a mark that its own statement does not."""
        for side in (case.left, case.right):
            for number, told in enumerate(side.transcripts):
                said = repr(
                    (told.columns, told.rows, told.notes, told.notices, told.error, told.text)
                )
                for _, place, around in leaks({"transcript": said.encode()}):
                    if MARKS[place] not in told.step.text.lower():
                        return finding(self.name, case, number, f"shows the {place}", [around])
        return None
