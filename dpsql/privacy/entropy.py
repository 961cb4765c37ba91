"""The only source of randomness: AES-256 in counter mode, keyed by the kernel."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

Shape = int | tuple[int, ...]
REKEY_BYTES = 1 << 28
_ZEROS = memoryview(bytes(1 << 18))
"""The plaintext: the key stream of a cipher is its encryption of zeros."""


class Randomness(Protocol):
    """Independent fair bits. An implementation has to provide ``raw`` only."""

    def raw(self, n: int) -> bytes:
        """The next ``n`` bytes."""
        ...

    def u32(self, shape: Shape) -> npt.NDArray[np.uint32]:
        """Uniform 32-bit words, four bytes each, little-endian, rows first."""
        count = int(np.prod(shape))
        return np.frombuffer(self.raw(4 * count), dtype="<u4").reshape(shape)

    def u64(self, n: int) -> npt.NDArray[np.uint64]:
        """Uniform 64-bit words, eight bytes each, little-endian."""
        return np.frombuffer(self.raw(8 * n), dtype="<u8")

    def bits(self, k: int) -> int:
        """A uniform integer below ``2**k``."""
        return int.from_bytes(self.raw((k + 7) // 8), "little") & ((1 << k) - 1)


class _Key(threading.local):
    """One thread's cipher, the process it belongs to, and the bytes it may still produce."""

    cipher: CipherContext | AEADEncryptionContext | None = None
    process = 0
    left = 0


class Entropy(Randomness):
    """Unpredictable randomness, for noise.

    Claim: every byte comes from a key that one thread of one process drew from the kernel and used
        for at most 256 MiB.
    Assumes: ``os.urandom`` is unpredictable and AES-256 is a pseudorandom permutation. At 2**24
        blocks for each key, counter mode is then distinguished from random bits with advantage
        below 2**-80.
    Argument: the cipher is thread-local. A forked child has another process number and draws a new
        key before its first byte. No request takes more bytes from a key than it has left.

    >>> len(Entropy().raw(16))
    16
    """

    def __init__(self) -> None:
        """Draw no key yet: each thread draws its own at its first request."""
        self._key = _Key()

    def raw(self, n: int) -> bytes:
        """The next ``n`` bytes."""
        key, parts = self._key, []
        while True:
            if key.cipher is None or key.left <= 0 or key.process != os.getpid():
                key.cipher = Cipher(AES256(os.urandom(32)), CTR(os.urandom(16))).encryptor()
                key.process, key.left = os.getpid(), REKEY_BYTES
            take = min(n, key.left, len(_ZEROS))
            key.left -= take
            parts.append(key.cipher.update(_ZEROS[:take]))
            n -= take
            if not n:
                return parts[0] if len(parts) == 1 else b"".join(parts)


class Repeatable(Randomness):
    """Bits computed from public bytes, so that a simulation gives the same result each time.

    They must never be used as noise: anyone who knows the public bytes can compute all of them.

    >>> Repeatable(b"released").raw(4) == Repeatable(b"released").raw(4)
    True
    """

    def __init__(self, public: bytes) -> None:
        """Derive the stream from these bytes."""
        key = hashlib.sha256(public).digest()
        self._stream = Cipher(AES256(key), CTR(bytes(16))).encryptor()

    def raw(self, n: int) -> bytes:
        """The next ``n`` bytes."""
        return self._stream.update(bytes(n))
