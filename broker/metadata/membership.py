"""A broker's presence in its cluster: a session, the registration under it, and the candidacy for controller.

```
register ─► new session ─► registration (starting) ─► candidate for controller
serve    ─► registration (running), when the image has the first one
keep     ─► whenever the session is lost though this process lives: register, serve
leave    ─► registration gone, with a note that everything is on disk
```

If an operator has deleted the registration, the session is ended and the broker registers again, too. It does not
register in a store without its cluster: see `freeze`.

A session is lost when its owner was silent for too long: paused, or cut off from the store. The other brokers have then
taken its partitions over. Nothing restarts: the broker registers again, under a new broker epoch but as the same
incarnation, and later images contain what it leads and follows.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.controller import Controller
from odradek.broker.metadata.registration import Identity, Registration
from odradek.broker.metadata.store.commit import until_reached
from odradek.broker.metadata.store.store import (
    TEMPORARY_ERRORS,
    LeaseLostError,
    MetadataStore,
    Session,
    StoreError,
    StoreUnreachableError,
    read_key,
)
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_RETRY_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 5.0
"""How long a stop waits for an answer: longer than an election of etcd, shorter than a supervisor waits."""


class Membership:
    """One process as a member of the cluster.

    `epoch`: its broker epoch, 0 before `register`. `recorded_epoch`: the last one that the store keeps when the
    registration is gone, 0 before `serve`.
    """

    def __init__(
        self,
        store: MetadataStore,
        keys: Keys,
        identity: Identity,
        controller: Controller,
        *,
        session_seconds: float,
        wait_for_revision: Callable[[int], Awaitable[None]],
        wait_until_usable: Callable[[], Awaitable[None]],
        on_epoch: Callable[[int], None],
        before_serving: Callable[[], Awaitable[None]],
    ) -> None:
        """`wait_for_revision` returns when this broker's image has a revision; `on_epoch` is called with each epoch.

        `wait_until_usable` returns when the store has the cluster of this broker. `before_serving` is awaited when the
        image has a registration, before the broker is registered as running.
        """
        self._store = store
        self._keys = keys
        self._identity = identity
        self._controller = controller
        self._session_seconds = session_seconds
        self._wait_for_revision = wait_for_revision
        self._wait_until_usable = wait_until_usable
        self._on_epoch = on_epoch
        self._before_serving = before_serving
        self._unregistered = asyncio.Event()
        self._image = MetadataImage()
        self._image_changed = asyncio.Event()  # set by `fail`, too
        self._failure: StoreError | None = None
        self._session: Session | None = None
        self._registration: Registration | None = None
        self._registered: Session | None = None  # the session of the present registration
        self.epoch = 0
        self.recorded_epoch = 0

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
        self._unregistered.clear()
        self._registration = registration
        self._registered = session
        self._on_epoch(self.epoch)
        await self._controller.stand(session)

    def deadline(self) -> float:
        """Return the boot time until which the registration exists for certain; minus infinity if it may be gone."""
        session = self._registered
        if session is None or session.lost.is_set() or self._unregistered.is_set():
            return -math.inf
        return session.deadline()

    async def serve(self) -> None:
        """Register as running; return when the image has that."""
        assert self._registration is not None
        await self._wait_for_revision(self.epoch)
        await self._before_serving()
        revision = await self._registration.run()
        self.recorded_epoch = self._registration.epoch
        await self._wait_for_revision(revision)

    async def join(self) -> None:
        """As `register`, for the first time; waits while the store cannot be reached."""
        await until_reached(self._register_anew)

    async def serve_first(self) -> None:
        """As `serve`, for the first time; registers again if the session is lost meanwhile."""
        try:
            await self.serve()
        except (LeaseLostError, StoreUnreachableError) as error:
            _LOG.warning("not registered yet", reason=str(error))
            await self._register_again()

    async def keep(self) -> None:
        """Register again whenever the session is lost, until cancelled.

        Raises `RegistrationError` if the node id has another owner by then, and `StoreFailedError`.
        """
        while True:
            session = self._session
            assert session is not None
            await self._ended(session)
            reason = "session lost" if session.lost.is_set() else "registration deleted"
            _LOG.warning(f"{reason}, registering again", node_id=self._identity.node_id, epoch=self.epoch)
            await self._register_again()

    def image_changed(self, image: MetadataImage) -> None:
        """Note whether a new image still has this broker's registration."""
        self._image = image
        self._image_changed.set()
        registered = image.registered.get(self._identity.node_id)
        if image.revision >= self.epoch and (registered is None or registered.epoch != self.epoch):
            self._unregistered.set()

    async def _ended(self, session: Session) -> None:
        """Return when the session is lost, or the registration is gone."""
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(event.wait()) for event in (session.lost, self._unregistered)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _register_anew(self) -> None:
        """As `register`; first end the session of a registration that is gone, or of an attempt that failed."""
        if self._session is not None:
            await self._session.revoke()
        await self.register()

    async def _register_again(self) -> None:
        while True:
            try:
                await self._wait_until_usable()
                await self._register_anew()
                await self.serve()
            except TEMPORARY_ERRORS as error:
                _LOG.warning("not registered yet", reason=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                _LOG.info("registered again", node_id=self._identity.node_id, epoch=self.epoch)
                return

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The ids of the log directories that work, as they are registered."""
        return self._identity.log_dirs

    async def set_log_dirs(self, log_dirs: tuple[str, ...]) -> None:
        """Register the log directories that work, now and whenever this broker registers again."""
        if log_dirs != self._identity.log_dirs:
            if self._registration is not None:
                await self._registration.set_log_dirs(log_dirs)
            self._identity = self._identity._replace(log_dirs=log_dirs)

    async def drain(self) -> None:
        """Announce that this broker is stopping, and return when it leads no partition any more (KIP-841).

        A partition that no other broker can lead has no leader then. Raises `StoreUnreachableError` after a few seconds
        without an answer, and what the store raises.
        """
        if self._registration is None:
            return
        await _answered(self._registration.drain())
        while self._leads_any():
            if self._failure is not None:
                raise self._failure
            self._image_changed.clear()
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await self._image_changed.wait()
            except TimeoutError:  # either nobody elects, or the store is away
                await _answered(until_reached(lambda: read_key(self._store, self._keys.cluster)))

    def fail(self, error: StoreError) -> None:
        """End `drain` with `error`: no later image will arrive."""
        self._failure = error
        self._image_changed.set()

    def _leads_any(self) -> bool:
        topics, node_id = self._image.topics.values(), self._identity.node_id
        return any(each.leader == node_id for topic in topics for each in topic.partitions)

    async def leave(self, *, clean: bool) -> None:
        """End the session; if `clean`, record that everything is on disk.

        Raises `StoreUnreachableError` after a few seconds without an answer, and what the store raises. The session
        then ends by itself.
        """
        if self._registration is not None:
            await _answered(self._registration.close(clean=clean))


async def _answered(request: Awaitable[object]) -> None:
    """Await a request of a stopping broker. Raises `StoreUnreachableError` if it is not answered in time."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await request
    except TimeoutError:
        raise StoreUnreachableError("the stop could not be announced: the metadata store does not answer") from None
