"""Waits for the image to reach a revision of the metadata store."""

from __future__ import annotations

import asyncio

from odradek.broker.metadata.store.store import StoreError


class RevisionWaits:
    """Waits that end when a revision has been reached, or with an error when no later image will arrive."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._failure: StoreError | None = None

    @property
    def highest(self) -> int:
        """The highest revision that is waited for; 0 if none is."""
        return max(self._waiting.values(), default=0)

    def add(self, revision: int) -> asyncio.Future[None]:
        """Return a future for a revision that the image does not have yet. Raises the error given to `fail`."""
        if self._failure is not None:
            raise self._failure
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = revision
        future.add_done_callback(self._forget)
        return future

    def reached(self, revision: int) -> None:
        """End the waits for `revision` and earlier ones."""
        for future, wanted in self._waiting.items():
            if wanted <= revision and not future.done():
                future.set_result(None)

    def fail(self, error: StoreError) -> None:
        """End all waits, and later ones, with `error`."""
        self._failure = error
        for future in self._waiting:
            if not future.done():
                future.set_exception(error)

    def _forget(self, future: asyncio.Future[None]) -> None:
        del self._waiting[future]
