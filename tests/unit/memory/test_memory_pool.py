"""The pool of memory: what is held, what gives way, and who is refused."""

import gc
import threading

import pytest

from dpsql.memory import pool as pools
from dpsql.memory.cache import ENTRY, Cache, memoize
from dpsql.memory.pool import MODEST, Full, Hold, Pool, Use


def _size(_: str, value: bytes) -> int:
    return len(value)


def _cache(pool: Pool, use: Use = Use.CACHED_ANSWERS, most: int = 100) -> Cache[str, bytes]:
    return Cache(use, most, size=_size, pool=pool)


def _cost(size: int) -> int:
    return size + ENTRY


def test_a_hold_counts_until_it_is_released() -> None:
    pool = Pool(1_000)
    first, second = pool.hold(Use.ANSWERS, 600), pool.hold(Use.PREPARED, 300)
    assert (pool.held, pool.bytes_by_use()["answers"]) == (900, 600)
    first.resize(100)
    assert pool.held == 400
    first.release()
    first.release()
    second.release()
    assert pool.held == 0
    assert set(pool.bytes_by_use().values()) == {0}


def test_a_hold_that_nobody_refers_to_counts_no_more() -> None:
    pool = Pool(1_000)
    kept = {"a": pool.hold(Use.PORTALS, 700, owner="ann")}
    with pytest.raises(Full):
        pool.hold(Use.PORTALS, 400, owner="ann")
    assert pool.held == 700
    kept.clear()
    assert pool.held == 0
    assert pool.hold(Use.PORTALS, 900, owner="ann").bytes == 900


def test_a_full_pool_refuses_and_changes_nothing() -> None:
    pool = Pool(1_000)
    hold = pool.hold(Use.RECEIVED, 800)
    with pytest.raises(Full, match="no memory is left for messages") as caught:
        hold.resize(1_001)
    assert (caught.value.use, caught.value.size) == (Use.RECEIVED, 1_001)
    assert (hold.bytes, pool.held) == (800, 800)
    assert pool.hold(Use.ANSWERS, 200).bytes == 200


def test_what_is_held_of_one_object_counts_once() -> None:
    pool, table = Pool(1_000), [1, 2]
    one = pool.hold(Use.ANSWERS, 400, of=table)
    two = pool.hold(Use.ANSWERS, 400, of=table)
    assert one is two
    assert pool.held == 400
    del one
    assert pool.held == 400
    two.release()
    three = pool.hold(Use.ANSWERS, 300, of=table)
    assert three is not two
    assert pool.held == 300


def test_caches_give_way_to_what_is_held_oldest_first() -> None:
    pool = Pool(64_000)
    one, two = _cache(pool), _cache(pool, Use.CACHED_CATALOG)
    for i in range(8):
        one.put(f"k{i}", bytes(2_000))
        two.put(f"k{i}", bytes(2_000))
    assert one.get("k0") is not None
    whole = pool.cached
    assert whole == 16 * _cost(2_000)
    hold = pool.hold(Use.ANSWERS, pool.most - whole + 1)
    assert two.get("k0") is None
    assert one.get("k0") is not None
    assert one.get("k1") is not None
    hold.resize(pool.most)
    assert pool.cached == len(one) == len(two) == 0
    one.put("x", bytes(10))
    assert one.get("x") is None
    hold.release()
    one.put("x", bytes(10))
    assert one.get("x") == bytes(10)


def test_a_refused_hold_evicts_nothing() -> None:
    pool = Pool(64_000)
    cache, held = _cache(pool), pool.hold(Use.ANSWERS, 40_000)
    cache.put("k", bytes(3_000))
    with pytest.raises(Full):
        pool.hold(Use.ANSWERS, 30_000)
    assert cache.get("k") is not None
    assert held.bytes == 40_000


def test_a_cache_keeps_so_many_entries_and_none_that_is_large() -> None:
    pool = Pool(64_000)
    cache = _cache(pool, most=2)
    cache.put("a", b"1")
    cache.put("b", b"2")
    assert cache.get("a") == b"1"
    cache.put("c", b"3")
    assert (cache.get("b"), cache.get("a"), cache.get("c")) == (None, b"1", b"3")
    cache.put("a", b"12")
    assert pool.cached == _cost(2) + _cost(1)
    cache.put("a", bytes(pool.most // 16))
    assert cache.get("a") is None, "what was known before stands for it no more"
    assert pool.cached == _cost(1)
    cache.clear()
    assert pool.cached == 0
    assert pool.lookups_by_cache() == {"cached_answers": (3, 2)}


def test_a_cache_that_is_gone_counts_no_more() -> None:
    pool = Pool(64_000)
    cache = _cache(pool)
    cache.put("a", bytes(3_000))
    assert pool.bytes_by_use()["cached_answers"] == _cost(3_000)
    del cache
    gc.collect()
    assert pool.bytes_by_use()["cached_answers"] == 0
    assert (pool.held, pool.cached) == (0, 0)


def test_one_owner_leaves_room_for_others() -> None:
    pool = Pool(80 * MODEST)
    ann = [pool.hold(Use.ANSWERS, 10 * MODEST, "ann") for _ in range(4)]
    with pytest.raises(Full):
        pool.hold(Use.ANSWERS, 10 * MODEST, "ann")
    bob = [pool.hold(Use.ANSWERS, 10 * MODEST, "bob") for _ in range(3)]
    with pytest.raises(Full):
        pool.hold(Use.ANSWERS, 10 * MODEST, "bob")
    modest = [pool.hold(Use.PREPARED, MODEST, f"client {i}") for i in range(10)]
    with pytest.raises(Full):
        pool.hold(Use.PREPARED, MODEST, "client 11")
    assert pool.held == 80 * MODEST
    ann.clear()
    bob.clear()
    modest.clear()
    assert pool.held == 0
    assert pool.hold(Use.ANSWERS, 40 * MODEST, "ann").bytes == 40 * MODEST


def test_another_size_holds_from_then_on() -> None:
    pool = Pool(64_000)
    cache, hold = _cache(pool), pool.hold(Use.ANSWERS, 20_000)
    for name in "abcdefghij":
        cache.put(name, bytes(3_000))
    pool.limit(30_000)
    assert pool.cached <= 10_000
    pool.limit(10_000)
    assert (pool.cached, pool.held) == (0, 20_000)
    with pytest.raises(Full):
        hold.resize(20_001)
    hold.resize(9_000)
    assert pool.held == 9_000


def test_a_function_remembers_what_it_gave() -> None:
    asked, pool = [], Pool(64_000)

    @memoize(Use.CACHED_CHECKS, 2, pool)
    def double(text: str) -> str:
        """Twice the text."""
        asked.append(text)
        return text * 2

    assert [double(text) for text in ("a", "b", "a", "c", "b")] == ["aa", "bb", "aa", "cc", "bb"]
    assert asked == ["a", "b", "c", "b"]
    assert double.__doc__ == "Twice the text."
    assert pool.bytes_by_use()["cached_checks"] == pool.cached > 2 * ENTRY


def test_threads_leave_nothing_behind() -> None:
    pool = Pool(100_000)
    caches = [_cache(pool, use) for use in (Use.CACHED_ANSWERS, Use.CACHED_PLANS)]
    wrong: list[str] = []

    def work(seed: int) -> None:
        holds: list[Hold] = []
        for i in range(seed, 400_000, 997):
            caches[i % 2].put(f"{i % 53}", bytes(i % 4_001))
            caches[i % 3 % 2].get(f"{i % 47}")
            try:
                holds.append(pool.hold(Use.ANSWERS, i % 30_011, owner=seed))
            except Full:
                holds.clear()
            if pool.held > pool.most:
                wrong.append("more is held than there is")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert pool.held == 0
    assert pool.cached == sum(cache.bytes for cache in caches) <= pool.most
    for cache in caches:
        cache.clear()
    assert pool.cached == 0


def test_a_cache_that_does_not_count_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "_count", lambda *_: None)
    with pytest.raises(AssertionError):
        test_caches_give_way_to_what_is_held_oldest_first()


def test_a_hold_that_is_not_released_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hold, "__del__", lambda _: None)
    with pytest.raises(AssertionError):
        test_a_hold_that_nobody_refers_to_counts_no_more()


def test_the_pool_of_the_process_has_the_default_share() -> None:
    from dpsql.policy.shares import shares

    assert shares(None, "4GB").pool == pools.USUAL
