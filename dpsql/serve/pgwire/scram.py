"""The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import stringprep
import unicodedata
from dataclasses import dataclass

from dpsql.serve.pgwire.errors import PASSWORD, PROTOCOL, Fatal

PLAIN, BOUND_TO_TLS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
ITERATIONS = 4096
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([^$:]+)\$([^$:]+):([^$:]+)")


@dataclass(frozen=True, slots=True)
class Verifier:
    """The data with which a password is checked, so that the password is not stored."""

    iterations: int
    salt: bytes
    stored: bytes
    server: bytes

    @classmethod
    def parse(cls, text: str) -> Verifier | None:
        """Read a verifier in PostgreSQL's own format; None for any other text."""
        found = _VERIFIER.fullmatch(text)
        if found is None:
            return None
        try:
            salt, stored, server = (base64.b64decode(g, validate=True) for g in found.groups()[1:])
        except binascii.Error:
            return None
        usable = len(stored) == len(server) == 32 and int(found[1]) > 0
        return cls(int(found[1]), salt, stored, server) if usable else None

    @classmethod
    def of(cls, password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
        """The verifier of a password."""
        salted = hashlib.pbkdf2_hmac("sha256", _prepared(password), salt, iterations)
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        return cls(iterations, salt, stored, hmac.digest(salted, b"Server Key", "sha256"))

    def fits(self, password: str) -> bool:
        """Whether this is the password."""
        other = Verifier.of(password, self.salt, self.iterations)
        return hmac.compare_digest(other.stored, self.stored)

    def __str__(self) -> str:
        """The text form, as a policy has it."""
        salt, stored, server = (_b64(b) for b in (self.salt, self.stored, self.server))
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def _prepared(password: str) -> bytes:
    """The password after the character mappings of SASLprep."""
    kept = (c for c in password if not stringprep.in_table_b1(c))
    spaced = "".join(" " if stringprep.in_table_c12(c) else c for c in kept)
    return unicodedata.normalize("NFKC", spaced).encode()


_FIRST = re.compile(r"((n|y|p=[^,]*),([^,]*),)(n=[^,]*,r=([!-+\--~]+)(?:,.*)?)", re.DOTALL)
_END_POINT = "p=tls-server-end-point"


class Exchange:
    """One log-in. ``first`` answers the client's first message, and ``final`` its proof.

    ``binding`` is the hash of the server's certificate if the connection is encrypted.
    """

    def __init__(self, verifier: Verifier, nonce: str, binding: bytes | None = None) -> None:
        """``nonce`` must be fresh and unpredictable."""
        self._verifier, self._nonce, self._binding = verifier, nonce, binding
        self._header = self._bare = self._challenge = ""
        self._bound = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered, best first."""
        return (PLAIN,) if self._binding is None else (BOUND_TO_TLS, PLAIN)

    def first(self, mechanism: str, data: bytes) -> bytes:
        """The challenge that answers the client's first message."""
        if mechanism not in self.mechanisms:
            raise Fatal(PROTOCOL, "client selected an invalid SASL authentication mechanism")
        found = _FIRST.fullmatch(_ascii(data))
        if found is None:
            raise Fatal(PROTOCOL, "malformed SCRAM message")
        self._header, flag, identity, self._bare, nonce = found.groups()
        self._bound = mechanism == BOUND_TO_TLS
        if flag.startswith("p=") != self._bound:
            raise Fatal(PROTOCOL, "malformed SCRAM message")
        if self._bound and flag != _END_POINT:
            raise Fatal(PROTOCOL, "unsupported SCRAM channel-binding type")
        if flag == "y" and self._binding is not None:
            raise Fatal("28000", "SCRAM channel binding negotiation error")
        if identity:
            raise Fatal("0A000", "client uses authorization identity, but it is not supported")
        self._nonce = nonce + self._nonce
        salt = _b64(self._verifier.salt)
        self._challenge = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._challenge.encode()

    def final(self, data: bytes) -> bytes | None:
        """The server's own proof; None if the password is wrong."""
        without_proof, binding, nonce, proof = _final(_ascii(data))
        expected = self._header.encode() + (self._binding or b"" if self._bound else b"")
        if _unb64(binding) != expected or nonce != self._nonce:
            raise Fatal(PASSWORD, "malformed SCRAM message")
        signed = f"{self._bare},{self._challenge},{without_proof}".encode()
        mask = hmac.digest(self._verifier.stored, signed, "sha256")
        raw = _unb64(proof)
        key = bytes(a ^ b for a, b in zip(raw, mask, strict=False))
        right = hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored)
        if len(raw) != len(mask) or not right:
            return None
        return b"v=" + _b64(hmac.digest(self._verifier.server, signed, "sha256")).encode()


def _final(text: str) -> tuple[str, str, str, str]:
    """The text that the proof signs, the channel binding, the nonce, and the proof.

    Extensions may stand between them. The text is split and not matched, since a regular expression
    with nested repetitions could take very long to fail.
    """
    fields = text.split(",")
    without_proof, proof = ",".join(fields[:-1]), fields[-1]
    letters = [field[:2] for field in (*fields[:2], proof)]
    if letters != ["c=", "r=", "p="] or not proof[2:] or not all("=" in f for f in fields):
        raise Fatal(PROTOCOL, "malformed SCRAM message")
    return without_proof, fields[0][2:], fields[1][2:], proof[2:]


def _ascii(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Fatal(PROTOCOL, "malformed SCRAM message") from None


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _unb64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Fatal(PROTOCOL, "malformed SCRAM message") from None
