from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from noise_streams import Recorded

from dpsql.privacy import entropy as module
from dpsql.privacy.entropy import Entropy


def test_words_are_little_endian_and_in_order() -> None:
    stream = Recorded(bytes(range(1, 100)))
    assert stream.u32((2, 1)).tolist() == [[0x04030201], [0x08070605]]
    assert stream.u64(1).tolist() == [0x100F0E0D0C0B0A09]
    assert stream.bits(12) == 0x1211 & 0xFFF
    assert stream.bits(0) == 0
    assert stream.used == 18


def test_shapes() -> None:
    assert Entropy().u32(3).shape == (3,)
    assert Entropy().u32((0, 5)).shape == (0, 5)
    assert Entropy().u32((2, 0)).shape == (2, 0)


def test_a_key_gives_no_more_than_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []

    def urandom(n: int) -> bytes:
        keys.append(n)
        return bytes(n)

    monkeypatch.setattr(module, "REKEY_BYTES", 64)
    monkeypatch.setattr(module.os, "urandom", urandom)
    entropy = Entropy()
    parts = entropy.raw(150)
    assert keys == [32, 16] * 3
    assert len(parts) == 150
    assert parts[:64] == parts[64:128]  # the fake kernel gives the same key each time
    entropy.raw(42)
    assert keys == [32, 16] * 3
    entropy.raw(1)
    assert keys == [32, 16] * 4


def test_a_forked_child_takes_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy = Entropy()
    entropy.raw(1)
    before = entropy._key.cipher
    entropy.raw(1)
    assert entropy._key.cipher is before
    child = os.getpid() + 1
    monkeypatch.setattr(module.os, "getpid", lambda: child)
    entropy.raw(1)
    assert entropy._key.cipher is not before


def test_threads_do_not_share_a_key() -> None:
    entropy = Entropy()
    first, seen = entropy.raw(32), []
    thread = threading.Thread(target=lambda: seen.append(entropy._key.cipher))
    thread.start()
    thread.join()
    assert seen == [None]
    assert entropy.raw(32) != first


def test_the_bits_are_fair() -> None:
    ones = np.unpackbits(np.frombuffer(Entropy().raw(1_000_000), np.uint8)).sum()
    assert abs(int(ones) - 4_000_000) < 7 * 1414
