"""The certificates of listeners with TLS, which AlterConfigs and IncrementalAlterConfigs load again (KIP-226).

Setting the path of a listener's store to what it is loads the store, before the change is stored and answered. If a
store cannot be used, or is of somebody else, the change is refused and the old certificates stay.

Differs from Kafka, which checks a store only when its path changes: it answers NONE for the same path, and logs that it
could not load the store. Here the answer says whether new connections use the new certificate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from odradek.broker.config.listener_config import PREFIX, listener_of
from odradek.broker.metadata.administration.alter_configs import Change, Operation
from odradek.broker.security.tls.settings import TlsSettingsError
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:  # a broker without TLS does not import it
    from odradek.broker.security.tls.listener_tls import ListenerTls

RunInThread = Callable[[Callable[[], None]], "asyncio.Future[None]"]


class Certificates:
    """The listeners with TLS, by name. `run_in_thread` runs a function that waits for a disk, and returns a future."""

    def __init__(self, listeners: Mapping[str, ListenerTls], run_in_thread: RunInThread) -> None:
        self._listeners = listeners
        self._run_in_thread = run_in_thread

    def altered(self, changes: Iterable[Change]) -> list[str]:
        """Return the names of the listeners with TLS of which `changes` set a property of a store."""
        names = [
            listener_of(change.name, self._listeners)
            for change in changes
            if change.operation is not Operation.DELETE and change.name.startswith(PREFIX) and ".ssl." in change.name
        ]
        return [name for name in dict.fromkeys(names) if name is not None]

    async def check(self, names: Iterable[str]) -> None:
        """Read the stores of these listeners, and change nothing. Raises `KafkaError` as `load` does."""
        for name in names:
            await self._run(name, self._listeners[name].check)

    async def load(self, names: Iterable[str]) -> None:
        """Read the stores of these listeners; new connections use them.

        Raises `KafkaError` INVALID_REQUEST for a store that cannot be used, whose listener keeps its old certificate.
        """
        for name in names:
            await self._run(name, self._listeners[name].reload)

    async def _run(self, name: str, read: Callable[[], None]) -> None:
        try:
            await self._run_in_thread(read)
        except TlsSettingsError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{error} (listener {name})") from error
