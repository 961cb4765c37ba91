"""Who has not logged in keeps no place from others."""

from __future__ import annotations

from dpsql.serve.newcomers import Newcomers


class _One:
    """A connection."""

    def __init__(self) -> None:
        self.gone = False

    def give_way(self) -> None:
        self.gone = True


def _from(there: Newcomers, address: str, count: int = 1, *, begun: bool = False) -> list[_One]:
    found = [_One() for _ in range(count)]
    for one in found:
        there.add(one, (address, 1), begun=begun)
    return found


def test_the_oldest_of_a_crowded_address_gives_way() -> None:
    there = Newcomers(100, 3)
    (other,) = _from(there, "192.0.2.1")
    crowd = _from(there, "192.0.2.2", 5)
    assert [one.gone for one in crowd] == [True, True, False, False, False]
    assert not other.gone
    assert (len(there), there.displaced) == (4, 2)


def test_who_is_silent_gives_way_first() -> None:
    there = Newcomers(100, 3)
    first, second, third = _from(there, "192.0.2.2", 3)
    there.begin(first)
    _from(there, "192.0.2.2")
    assert [one.gone for one in (first, second, third)] == [False, True, False]


def test_who_comes_is_not_the_one_to_go() -> None:
    """Those who began to log in, and went no further, do not keep the next one out."""
    there = Newcomers(100, 2)
    first, _ = _from(there, "192.0.2.2", 2, begun=True)
    (late,) = _from(there, "192.0.2.2")
    assert first.gone
    assert not late.gone


def test_when_all_is_full_the_largest_address_gives_way() -> None:
    there = Newcomers(5, 4)
    crowd = _from(there, "192.0.2.2", 3)
    others = [_from(there, f"192.0.2.{i}")[0] for i in (3, 4, 5)]
    assert [one.gone for one in crowd] == [True, False, False]
    assert not any(one.gone for one in others)


def test_a_network_of_one_subscriber_is_one_address() -> None:
    there = Newcomers(100, 2)
    (first,) = _from(there, "2001:db8:1:2::1")
    _from(there, "2001:db8:1:2::2")
    _from(there, "2001:db8:1:2::3")
    assert first.gone


def test_who_has_logged_in_or_is_gone_does_not_count() -> None:
    there = Newcomers(2, 2)
    first, second = _from(there, "192.0.2.2", 2)
    there.discard(first)
    there.discard(first)
    there.begin(first)
    _from(there, "192.0.2.3")
    assert not first.gone
    assert not second.gone
    assert len(there) == 2
