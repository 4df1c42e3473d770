from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from odradek.broker.security.authentication.tokens import key_cache
from odradek.broker.security.authentication.tokens.key_cache import KeyCache, KeyCacheSettings
from odradek.broker.security.authentication.tokens.key_set import KeySetError
from odradek.broker.testing.clock import ManualClock
from tests.security.authentication.tokens.issuer import key_set


class Source:
    """A key source that counts its fetches, each of which returns the next of `answers`; the last one for ever."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.fetches = 0
        self.threads: set[int] = set()

    def fetch(self) -> bytes:
        self.fetches += 1
        self.threads.add(threading.get_ident())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def abort(self) -> None:
        pass


class Hanging:
    """A key source that waits until it is aborted."""

    def __init__(self) -> None:
        self.aborted = threading.Event()

    def fetch(self) -> bytes:
        self.aborted.wait(60)
        raise OSError("aborted")

    def abort(self) -> None:
        self.aborted.set()


class Sleeps:
    """Takes the place of sleeping: notes the seconds, and stops the loop after so many."""

    def __init__(self, count: int) -> None:
        self.seconds: list[float] = []
        self._count = count
        self.on_sleep: Callable[[], None] = lambda: None

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._count:
            raise asyncio.CancelledError
        await asyncio.sleep(0)


async def test_the_first_token_waits_for_the_first_fetch_which_is_on_a_thread() -> None:
    source = Source(key_set("p256"))
    cache = KeyCache(source, ManualClock())
    found = await asyncio.gather(*[cache.find("p256", "ES256") for _ in range(10)])
    assert all(key is not None for key in found)
    assert source.fetches == 1
    assert threading.get_ident() not in source.threads


async def test_an_unknown_key_id_causes_one_fetch_a_minute() -> None:
    source, clock = Source(key_set("p256"), key_set("p256", "p384")), ManualClock()
    cache = KeyCache(source, clock)
    await cache.refresh()
    assert source.fetches == 1
    assert await cache.find("p384", "ES384") is not None  # the issuer has a new key, and it serves at once
    assert source.fetches == 2
    for _ in range(100):
        assert await cache.find("forged", "ES256") is None
    assert source.fetches == 2
    clock.advance(59_999)
    assert await cache.find("forged", "ES256") is None
    assert source.fetches == 2
    clock.advance(1)
    for _ in range(100):
        assert await cache.find("forged", "ES256") is None
    assert source.fetches == 3


async def test_the_set_is_fetched_again_at_the_interval() -> None:
    sleeps, source = Sleeps(3), Source(key_set("p256"))
    cache = KeyCache(source, ManualClock(), KeyCacheSettings(refresh_ms=5000), sleeps)
    with pytest.raises(asyncio.CancelledError):
        await cache.run()
    assert sleeps.seconds == [5, 5, 5]
    assert source.fetches == 3


async def test_failures_are_retried_more_and_more_slowly_and_the_last_keys_hold(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sleeps = Sleeps(8)
    source = Source(key_set("p256"), *[OSError("unreachable")] * 5, b"no key set", key_set("p256", "p384"))
    cache = KeyCache(source, ManualClock(), KeyCacheSettings(60_000, 100, 1000), sleeps)
    with caplog.at_level(logging.WARNING), pytest.raises(asyncio.CancelledError):
        await cache.run()
    assert sleeps.seconds == [60, 0.1, 0.2, 0.4, 0.8, 1, 1, 60]
    assert len(cache) == 2
    assert "unreachable" in caplog.text


async def test_a_failed_fetch_keeps_the_keys() -> None:
    cache = KeyCache(Source(key_set("p256"), KeySetError("gone")), ManualClock())
    assert await cache.refresh()
    assert not await cache.refresh()
    assert await cache.find("p256", "ES256") is not None


async def test_a_set_without_usable_keys_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert await KeyCache(Source(b'{"keys": []}'), ManualClock()).refresh()
    assert "no key" in caplog.text


async def test_a_fetch_that_takes_too_long_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_cache, "FETCH_SECONDS", 0.01)
    source = Hanging()
    assert not await KeyCache(source, ManualClock()).refresh()
    assert source.aborted.is_set()


async def test_a_stop_ends_a_fetch_that_is_under_way() -> None:
    source = Hanging()
    task = asyncio.ensure_future(KeyCache(source, ManualClock()).run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.aborted.is_set()
