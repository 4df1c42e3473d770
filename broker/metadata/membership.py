"""A broker's presence in its cluster: a session, the registration under it, and the candidacy for controller.

```
register ─► new session ─► registration (starting) ─► candidate for controller
serve    ─► registration (running), when the image has the first one
keep     ─► whenever the session is lost though this process lives: register, serve
leave    ─► registration gone, with a note that everything is on disk
```

A session is lost when its owner was silent for too long: paused, or cut off from the store. The other brokers have then
taken its partitions over. Nothing restarts: the broker registers again, under a new broker epoch but as the same
incarnation, and later images contain what it leads and follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from odradek.broker.metadata.controller import Controller
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import Identity, Registration
from odradek.broker.metadata.store.store import (
    LeaseLostError,
    MetadataStore,
    Session,
    StoreAccessError,
    StoreFullError,
    StoreUnreachableError,
)
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_RETRY_SECONDS: Final = 0.5
_TEMPORARY = (LeaseLostError, StoreUnreachableError, StoreFullError, StoreAccessError)


class Membership:
    """One process as a member of the cluster. `epoch`: its broker epoch, 0 before `register`."""

    def __init__(
        self,
        store: MetadataStore,
        keys: Keys,
        identity: Identity,
        controller: Controller,
        *,
        session_seconds: float,
        wait_for_revision: Callable[[int], Awaitable[None]],
        on_epoch: Callable[[int], None],
    ) -> None:
        """`wait_for_revision` returns when this broker's image has a revision; `on_epoch` is called with each epoch."""
        self._store = store
        self._keys = keys
        self._identity = identity
        self._controller = controller
        self._session_seconds = session_seconds
        self._wait_for_revision = wait_for_revision
        self._on_epoch = on_epoch
        self._session: Session | None = None
        self._registration: Registration | None = None
        self.epoch = 0

    async def register(self) -> None:
        """Register under a new session, and become the controller if there is none.

        Raises `RegistrationError` if another broker has the node id, and what the store raises.
        """
        self._session = session = await self._store.session(self._session_seconds)
        registration = Registration(
            self._store,
            self._keys,
            session,
            self._identity,
            previous_epoch=self.epoch,
            patience=self._session_seconds + 1,
        )
        self.epoch = await registration.register()
        self._registration = registration
        self._on_epoch(self.epoch)
        await self._controller.stand(session)

    async def serve(self) -> None:
        """Register as running; return when the image has that."""
        assert self._registration is not None
        await self._wait_for_revision(self.epoch)
        await self._wait_for_revision(await self._registration.run())

    async def keep(self) -> None:
        """Register again whenever the session is lost, until cancelled.

        Raises `RegistrationError` if the node id has another owner by then, and `StoreFailedError`.
        """
        while True:
            assert self._session is not None
            await self._session.lost.wait()
            _LOG.warning("session lost, registering again", node_id=self._identity.node_id, epoch=self.epoch)
            await self._register_again()

    async def _register_again(self) -> None:
        while True:
            try:
                await self.register()
                await self.serve()
            except _TEMPORARY as error:
                _LOG.warning("not registered yet", reason=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                _LOG.info("registered again", node_id=self._identity.node_id, epoch=self.epoch)
                return

    async def drain(self) -> None:
        """Announce that this broker is stopping: the controller gives its partitions other leaders (KIP-841)."""
        if self._registration is not None:
            await self._registration.drain()

    async def leave(self) -> None:
        """Record that everything is on disk, and end the session."""
        if self._registration is not None:
            await self._registration.close()
