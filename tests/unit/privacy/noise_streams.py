"""Streams of bytes for tests: seeded, recorded, and steered."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from dpsql.privacy.entropy import Randomness


class Seeded(Randomness):
    """The same fair bits for the same seed."""

    def __init__(self, seed: int) -> None:
        self._cipher = Cipher(AES256(seed.to_bytes(32, "little")), CTR(bytes(16))).encryptor()

    def raw(self, n: int) -> bytes:
        return self._cipher.update(bytes(n))


class Recorded(Randomness):
    """Given bytes, then zeros; ``used`` says how many were asked for."""

    def __init__(self, data: bytes = b"") -> None:
        self._data, self.used = data, 0

    def raw(self, n: int) -> bytes:
        part = self._data[self.used : self.used + n]
        self.used += n
        return part + bytes(n - len(part))
