"""The part of a broker that stays the same from run to run: its configuration, and its seams to the world."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.randomness import Randomness
from odradek.broker.startup.machine import Machine


@dataclass(frozen=True)
class Surroundings:
    """See the module.

    `store`: a metadata store that several brokers of this process share. `is_temporary`: the log directory is removed
    when the broker is closed.
    """

    config: BrokerConfig
    clock: Clock
    randomness: Randomness
    machine: Machine
    store: MetadataStore | None
    read_only: bool
    is_temporary: bool

    @property
    def is_member(self) -> bool:
        """Whether the broker belongs to a cluster of several."""
        return self.store is not None or bool(self.config.metadata_etcd_endpoints)
