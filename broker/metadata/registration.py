"""A broker's registration: its presence, its epoch, and whether it still has all that it acknowledged before.

```
register   ids/<node id> {starting}   under the session's lease; its create revision is the broker epoch
run        ids/<node id> {running}    once the broker's image has the registration; writes the epoch to known/
drain      ids/<node id> {draining}   when the broker is about to stop, and others can lead its partitions
close      known/<node id>            clean_shutdown_epoch = epoch, after the logs are on disk; then the lease ends
```

Between two registrations only `known/` remains. The broker is `intact` (has lost nothing) if it has all log directories
that it had before, and one of these holds: it stopped cleanly; the operating system did not restart, so that the writes
of a killed process are still in the page cache; it is the same process, whose session was lost. `intact_since` is the
epoch at which a chain of intact registrations began: everything acknowledged under it or a later one still exists.
`known/` is only rewritten when the broker runs: an incarnation that stopped before has acknowledged nothing, and must
not hide a loss of the one before.

If the node id is registered already, there are two cases:

| the old registration is | then |
|---|---|
| of this process; or of this log directory since the same boot: the lock on it proves that its owner is dead | revoke |
| any other, of a moved or copied directory, say | wait for its end; refused if its owner keeps it alive |

The lock proves nothing if the directory was copied on one machine. Two such brokers would revoke each other's lease for
ever. So an owner that came back after a revocation, or that registered while this process was registered, is alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import (
    KV,
    LeaseLostError,
    MetadataStore,
    Put,
    Session,
    StoreError,
    created_at,
    read_key,
    still,
)
from odradek.broker.metadata.values import (
    DRAINING,
    RUNNING,
    STARTING,
    BrokerRegistration,
    KnownBroker,
    Listener,
    PreviousEpoch,
    decode_known,
    decode_registration,
    encode,
)

_POLL_SECONDS: Final = 0.1


def advertised_listeners(config: BrokerConfig, addresses: Mapping[str, tuple[str, int]]) -> list[Listener]:
    """Return the listeners to register: `advertised.listeners`, else `addresses`, which are by listener name.

    With TLS a name in `listeners` is registered instead of its address, because certificates have names.
    """
    if config.advertised_listeners is not None:
        return [
            Listener(each.name, config.security_protocol(each.name), each.host, each.port)
            for each in config.advertised_listeners
        ]
    return [
        Listener(name, config.security_protocol(name), config.certified_name(name) or host, port)
        for name, (host, port) in addresses.items()
    ]


class Installation(NamedTuple):
    """A broker's log directories and software, which it knows before it registers.

    `log_dir_ids`: of the directories that work, the first with the metadata; `boot_id`: of the system ("": unknown);
    `host`: see `BrokerRegistration`.
    """

    cluster_id: str
    log_dir_ids: tuple[str, ...]
    boot_id: str
    software: str = ""
    host: str = ""

    def identity(self, config: BrokerConfig, incarnation: str, listeners: Sequence[Listener]) -> Identity:
        """The identity of a broker with this configuration that has started from here."""
        return Identity(
            config.node_id,
            self.log_dir_ids,
            self.boot_id,
            incarnation,
            config.broker_rack,
            list(listeners),
            self.software,
            self.host,
        )


class Identity(NamedTuple):
    """The identity of a broker.

    `log_dirs`: the ids of its log directories that work, the first with the metadata; `boot_id`: the system's boot ("":
    unknown).
    """

    node_id: int
    log_dirs: tuple[str, ...]
    boot_id: str
    incarnation: str
    rack: str | None
    listeners: list[Listener]
    software: str = ""
    host: str = ""


class RegistrationError(StoreError):
    """The broker cannot join this cluster; the message has the reason."""


class Registration:
    """One registration of this broker. `epoch` is its broker epoch once `register` has returned."""

    def __init__(
        self,
        store: MetadataStore,
        keys: Keys,
        session: Session,
        identity: Identity,
        *,
        previous_epoch: int = 0,
        patience: float = 0.0,
    ) -> None:
        """`previous_epoch`: of this process, 0 without; `patience`: seconds for which to await an old registration."""
        self._store = store
        self._identity = identity
        self._session = session
        self._previous_epoch = previous_epoch
        self._patience = patience
        self._key = keys.broker_id(identity.node_id)
        self._known_key = keys.broker_known(identity.node_id)
        self._value: BrokerRegistration | None = None
        self._revoked: set[str] = set()  # incarnations
        self._rewriting = asyncio.Lock()
        self.epoch = 0

    async def register(self) -> int:
        """Register as starting and return the broker epoch. Raises `RegistrationError` if the node id is another's."""
        while True:
            known_kv = await self._read(self._known_key)
            known = decode_known(known_kv.value) if known_kv else None
            old = await self._read(self._key)
            if old is not None:
                await self._end(old, known)
                continue
            value = self._registration(known)
            # known/ is not overwritten here, but must be unchanged since `intact` was computed.
            when = (still(self._key, 0), still(self._known_key, known_kv.mod_revision if known_kv else 0))
            result = await commit(self._store, when, (Put(self._key, encode(value), self._session.lease),))
            if result.ok:
                self._value, self.epoch = value, result.revision
                return self.epoch

    async def run(self) -> int:
        """Register as running. Returns the revision of the change. Raises `LeaseLostError` if the session is lost."""
        async with self._rewriting:
            return await self._run()

    async def _run(self) -> int:
        assert self._value is not None
        running = msgspec.structs.replace(self._value, state=RUNNING, log_dirs=list(self._identity.log_dirs))
        known_kv = await self._read(self._known_key)
        known = KnownBroker(
            last_epoch=self.epoch,
            log_dir=self._identity.log_dirs[0],
            boot_id=self._identity.boot_id,
            intact_since=self._value.intact_since or self.epoch,
            rack=self._identity.rack,
            log_dirs=list(self._identity.log_dirs),
            listeners=self._identity.listeners,
            host=self._identity.host,
        )
        result = await commit(
            self._store,
            (created_at(self._key, self.epoch), still(self._known_key, known_kv.mod_revision if known_kv else 0)),
            (
                Put(self._known_key, encode(known, known_kv.value if known_kv else b"")),
                Put(self._key, encode(running), self._session.lease),
            ),
        )
        if not result.ok:
            raise LeaseLostError(f"broker {self._identity.node_id} lost its registration before it was running")
        self._value = running
        return result.revision

    async def set_log_dirs(self, log_dirs: tuple[str, ...]) -> None:
        """Register the log directories that work, under the same epoch. Does nothing if the session is lost.

        Everything in the others must have been reported as lost before: a later registration is intact without them.
        """
        self._identity = self._identity._replace(log_dirs=log_dirs)
        async with self._rewriting:
            assert self._value is not None
            value = msgspec.structs.replace(self._value, log_dirs=list(log_dirs))
            known_kv = await self._read(self._known_key)
            known = None if known_kv is None else decode_known(known_kv.value)
            if known_kv is None or known is None or known.last_epoch != self.epoch:
                return  # it does not run yet, and `run` will write them
            known = msgspec.structs.replace(known, log_dirs=list(log_dirs))
            when = (created_at(self._key, self.epoch), still(self._known_key, known_kv.mod_revision))
            put = Put(self._known_key, encode(known, known_kv.value))
            if (await commit(self._store, when, (put, Put(self._key, encode(value), self._session.lease)))).ok:
                self._value = value

    async def drain(self) -> None:
        """Register as draining. Does nothing if the session is lost."""
        async with self._rewriting:
            assert self._value is not None
            draining = msgspec.structs.replace(self._value, state=DRAINING)
            put = Put(self._key, encode(draining), self._session.lease)
            if (await commit(self._store, (created_at(self._key, self.epoch),), (put,))).ok:
                self._value = draining

    async def close(self, *, clean: bool) -> None:
        """Leave the cluster; if `clean`, record that everything is on disk."""
        known_kv = await self._read(self._known_key) if clean else None
        if known_kv is not None and (known := decode_known(known_kv.value)).last_epoch == self.epoch:
            marked = msgspec.structs.replace(known, clean_shutdown_epoch=self.epoch)
            when = (still(self._known_key, known_kv.mod_revision), created_at(self._key, self.epoch))
            await commit(self._store, when, (Put(self._known_key, encode(marked, known_kv.value)),))
        await self._session.revoke()

    async def _end(self, old: KV, known: KnownBroker | None) -> None:
        """Return when the old registration has ended. Raises `RegistrationError` if its owner keeps it alive."""
        owner, identity = decode_registration(old.value), self._identity
        log_dir = owner.log_dirs[0] if owner.log_dirs else known.log_dir if known is not None else "unknown"
        is_of_directory = log_dir == identity.log_dirs[0]
        if owner.incarnation == identity.incarnation or (is_of_directory and self._is_dead(owner)):
            self._revoked.add(owner.incarnation)
            await self._store.revoke(owner.lease)
            return
        give_up_at = asyncio.get_running_loop().time() + self._patience
        while asyncio.get_running_loop().time() < give_up_at:
            await asyncio.sleep(_POLL_SECONDS)
            present = await self._read(self._key)
            if present is None or present.create_revision != old.create_revision:
                return
        places = ", ".join(f"{each.host}:{each.port}" for each in owner.listeners)
        copied = ", so one is a copy" if is_of_directory else ""
        raise RegistrationError(
            f"node.id {identity.node_id} is in use by another broker, which is alive (listeners {places},"
            f" log directory {log_dir}; this one has {identity.log_dirs[0]}{copied})"
        )

    def _is_dead(self, owner: BrokerRegistration) -> bool:
        """Whether the lock on the log directory proves that the owner of another registration of it is dead."""
        since_this_boot = owner.boot_id == self._identity.boot_id != ""
        return since_this_boot and not self._previous_epoch and owner.incarnation not in self._revoked

    def _registration(self, known: KnownBroker | None) -> BrokerRegistration:
        intact = known is not None and self._is_intact(known)
        return BrokerRegistration(
            listeners=self._identity.listeners,
            rack=self._identity.rack,
            incarnation=self._identity.incarnation,
            lease=self._session.lease,
            boot_id=self._identity.boot_id,
            state=STARTING,
            prev=PreviousEpoch(known.last_epoch, intact) if known else None,
            intact_since=(known.intact_since or known.last_epoch) if known and intact else 0,
            log_dirs=list(self._identity.log_dirs),
            software=self._identity.software,
            host=self._identity.host,
        )

    def _is_intact(self, known: KnownBroker) -> bool:
        stopped_cleanly = known.clean_shutdown_epoch == known.last_epoch
        same_boot = known.boot_id == self._identity.boot_id != ""
        same_process = known.last_epoch == self._previous_epoch
        has_all = {known.log_dir, *known.log_dirs} <= set(self._identity.log_dirs)
        return has_all and (stopped_cleanly or same_boot or same_process)

    async def _read(self, key: bytes) -> KV | None:
        return (await read_key(self._store, key))[0]
