"""The part of a broker that stays the same from run to run: its configuration, and its seams to the world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.randomness import Randomness
from odradek.broker.startup.machine import Machine


class Worker(NamedTuple):
    """One of several processes of a machine, `host`, under one supervisor.

    `store_socket`: where the supervisor serves the metadata store; None: it is in etcd.
    """

    host: str
    store_socket: Path | None


@dataclass(frozen=True)
class Surroundings:
    """See the module.

    `store`: a metadata store that several brokers of this process share. `worker`: the place among the workers of this
    machine, if there are several. `is_temporary`: the log directory is removed when the broker is closed.
    """

    config: BrokerConfig
    clock: Clock
    randomness: Randomness
    machine: Machine
    store: MetadataStore | None
    read_only: bool
    is_temporary: bool
    worker: Worker | None = None

    @property
    def is_member(self) -> bool:
        """Whether the broker belongs to a cluster of several."""
        return self.store is not None or self.worker is not None or bool(self.config.metadata_etcd_endpoints)

    @property
    def host(self) -> str:
        """The machine, for a worker; "" for a broker that fails alone."""
        return "" if self.worker is None else self.worker.host

    @property
    def store_socket(self) -> Path | None:
        """Where a supervisor serves the metadata store, if one does."""
        return None if self.worker is None else self.worker.store_socket
