"""Salts and iterations that a client sees before it has proved a password.

SCRAM sends the salt and the iterations of a name's verifier. For a name that does not exist they
are derived from a secret in the ledger. So they are the same after a restart and at each endpoint
on one ledger, as those of an existing name are. Their form (iterations, length of the salt) is that
of some existing verifier. If all verifiers have one form, adding or removing users changes the form
of no name; otherwise it changes the forms of few names.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Iterable, Mapping

from dpsql.serve.pgwire.scram import ITERATIONS, Verifier

SALT = 16
"""Bytes of a salt, as PostgreSQL and `dpsql user` make them."""
Look = tuple[int, int]
"""The form of a verifier: its iterations, and the bytes of its salt."""


def looks(verifiers: Iterable[Verifier]) -> Mapping[Look, int]:
    """The number of verifiers of each form."""
    return Counter((v.iterations, len(v.salt)) for v in verifiers) or {(ITERATIONS, SALT): 1}


class Salts:
    """Salts and forms of verifiers for any name."""

    def __init__(self, secret: bytes, database: str) -> None:
        """``secret`` is the ledger's. Policies that share a ledger have different salts."""
        self._secret = hmac.digest(secret, database.encode(), "sha256")

    def salt(self, name: str, length: int = SALT) -> bytes:
        """The salt of a name."""
        return hashlib.shake_256(self._digest(f"salt {name}")).digest(length)

    def number(self, name: str) -> int:
        """A number of 256 bits that is fixed for a name."""
        return int.from_bytes(self._digest(f"number {name}"))

    def look(self, name: str, known: Mapping[Look, int]) -> Look:
        """One of the ``known`` forms, each for as large a share of names as of verifiers.

        The choice is by weighted rendezvous hashing. Each form gets a pseudorandom time for the
        name, divided by the form's weight, and the form with the smallest time is chosen. So a
        change of one weight moves no name between two other forms.
        """
        return min(known, key=lambda look: self._time(name, look) / known[look])

    def _time(self, name: str, look: Look) -> float:
        drawn = int.from_bytes(self._digest(f"look {look[0]} {look[1]} {name}")[:6])
        return -math.log((drawn + 1) / (2**48 + 1))

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(errors="surrogatepass"), "sha256")
