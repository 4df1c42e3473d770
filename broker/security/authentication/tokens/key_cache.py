"""The issuer's public keys, kept current: `RefreshingHttpsJwks` in Kafka.

`run` fetches the set at once, then every `refresh_ms`; after a failure again after `retry_backoff_ms`, twice as long
after each further one, up to `retry_backoff_max_ms`. Meanwhile the last keys hold. A token whose key is not in the set
makes the cache fetch the set once more, because the issuer may have a new key; but at most once in
`UNKNOWN_KEY_SECONDS`, whatever clients send. Fetches run on a thread, one at a time; tokens that need a key meanwhile
wait for the same fetch.
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from odradek.broker.clock import Clock
from odradek.broker.security.authentication.tokens.key_set import Key, KeySet, KeySetError, parse_key_set
from odradek.broker.security.authentication.tokens.key_source import KeySource
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import outcome_of

UNKNOWN_KEY_SECONDS: Final = 60.0
"""Kafka's `RefreshingHttpsJwks.MISSING_KEY_ID_CACHE_IN_FLIGHT_MS`."""
FETCH_SECONDS: Final = 10.0
"""A fetch that takes longer is aborted."""
_LOG = StructuredLogger(__name__)


class KeyCacheSettings(msgspec.Struct, frozen=True):
    """How often the set is fetched, in milliseconds.

    `refresh_ms`: `sasl.oauthbearer.jwks.endpoint.refresh.ms`; `retry_backoff_ms`:
    `sasl.oauthbearer.jwks.endpoint.retry.backoff.ms`; `retry_backoff_max_ms`:
    `sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms`.
    """

    refresh_ms: int = 3_600_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


class KeyCache:
    """The keys of one issuer. Used on the event loop; `run` is a background task of the broker."""

    def __init__(
        self,
        source: KeySource,
        clock: Clock,
        settings: KeyCacheSettings | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._clock = clock
        self._settings = settings or KeyCacheSettings()
        self._sleep = sleep
        self._keys = KeySet()
        self._fetch: asyncio.Task[bool] | None = None
        self._reading: asyncio.Future[bytes] | None = None  # the thread's part of it
        self._next_for_unknown = clock.monotonic()

    def __len__(self) -> int:
        """The number of keys that can verify tokens."""
        return len(self._keys)

    async def run(self) -> None:
        """Keep the keys current until cancelled."""
        failures = 0
        try:
            while True:
                if await self.refresh():
                    failures = 0
                    await self._sleep(self._settings.refresh_ms / 1000)
                else:
                    backoff = self._settings.retry_backoff_ms * 2 ** min(failures, 30)
                    failures += 1
                    await self._sleep(min(backoff, self._settings.retry_backoff_max_ms) / 1000)
        finally:
            self._source.abort()
            if self._fetch is not None:
                self._fetch.cancel()

    async def find(self, kid: str | None, algorithm: str) -> Key | None:
        """Return the key for a token; None if the issuer has none. May wait for a fetch."""
        key = self._keys.find(kid, algorithm)
        if key is not None:
            return key
        if self._fetch is None:
            now = self._clock.monotonic()
            if now < self._next_for_unknown:
                return None
            self._next_for_unknown = now + UNKNOWN_KEY_SECONDS
        await self.refresh()
        return self._keys.find(kid, algorithm)

    async def refresh(self) -> bool:
        """Fetch the set, or wait for the fetch that is under way; return whether it succeeded."""
        if self._fetch is None:
            self._fetch = asyncio.get_running_loop().create_task(self._fetch_once())
            self._fetch.add_done_callback(self._ended)
        return await outcome_of(self._fetch)  # another one may wait for it, too

    def _ended(self, _fetch: asyncio.Task[bool]) -> None:
        self._fetch = None

    async def _fetch_once(self) -> bool:
        try:
            text = await self._text()
            self._keys = parse_key_set(text)
        except (OSError, http.client.HTTPException, KeySetError) as error:
            _LOG.warning("cannot fetch the keys of tokens", error=str(error) or type(error).__name__)
            return False
        if not len(self._keys):
            _LOG.warning("the key set of the token issuer has no key that can verify tokens")
        return True

    async def _text(self) -> bytes:
        if self._reading is not None and not self._reading.done():
            raise KeySetError("the last fetch has been aborted and has not ended yet")
        self._reading = reading = asyncio.get_running_loop().run_in_executor(None, self._source.fetch)
        done, _ = await asyncio.wait([reading], timeout=FETCH_SECONDS)
        if not done:
            self._source.abort()
            reading.add_done_callback(_ignore_failure)
            raise KeySetError(f"the key set was not there after {FETCH_SECONDS:.0f} seconds")
        return reading.result()


def _ignore_failure(reading: asyncio.Future[bytes]) -> None:
    """Retrieve the error of a fetch whose result nobody waits for any more."""
    if not reading.cancelled():
        reading.exception()
