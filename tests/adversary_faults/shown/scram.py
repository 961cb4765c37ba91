"""A client of PostgreSQL's log-in that can do it wrongly."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Scram:
    """One log-in over a connection of its own."""

    def __init__(
        self, port: int, user: str = "analyst", password: str = "right", *, encrypted: bool = False
    ) -> None:
        """Connected; the mechanisms have been offered."""
        self._password = password.encode()
        self._socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        if encrypted:
            self._socket.sendall(struct.pack("!ii", 8, 80877103))
            assert self._socket.recv(1) == b"S"
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self._socket = context.wrap_socket(self._socket)
        body = struct.pack("!i", 196608) + f"user\0{user}\0database\0p\0\0".encode()
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._receive()

    def salt(self) -> bytes:
        """The salt that a name is given."""
        return base64.b64decode(self._first("n")[1])

    def enters(self, flag: str = "n", extra: bytes = b"") -> bool:
        """Whether the password is taken, with this flag of channel binding, and more behind the proof."""
        first = self._first(flag)
        if first is None:
            return False
        bare, salt, iterations, nonce, challenge = (first[0], *first[1:])
        salted = hashlib.pbkdf2_hmac(
            "sha256", self._password, base64.b64decode(salt), int(iterations)
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c={base64.b64encode(f'{flag},,'.encode()).decode()},r={nonce}"
        signed = f"{bare},{challenge},{without}".encode()
        mask = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, mask, strict=True)) + extra
        self._send(f"{without},p={base64.b64encode(proof).decode()}".encode())
        return self._receive()[0] == "R"

    def _first(self, flag: str) -> tuple[str, str, str, str, str] | None:
        bare = f"n=,r={secrets.token_hex(9)}"
        message = f"{flag},,{bare}".encode()
        self._send(b"SCRAM-SHA-256\0" + struct.pack("!i", len(message)) + message)
        kind, body = self._receive()
        if kind != "R":
            return None
        challenge = body[4:].decode()
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        return bare, parts["s"], parts["i"], parts["r"], challenge

    def _send(self, body: bytes) -> None:
        self._socket.sendall(b"p" + struct.pack("!i", len(body) + 4) + body)

    def _receive(self) -> tuple[str, bytes]:
        head = self._exactly(5)
        return chr(head[0]), self._exactly(struct.unpack("!i", head[1:])[0] - 4)

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._socket.recv(count - len(found))
            if not part:
                raise ConnectionError
            found += part
        return found


def tls(folder: Path) -> list[str]:
    """Options of an endpoint with a certificate that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=9))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]
