"""What handlers may use: the parts of one broker, typed, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.coordinator.groups import Groups
from broker.metadata.metadata import Metadata
from broker.metadata.producer_id_blocks import ProducerIdBlocks
from broker.metrics.metrics import Metrics
from broker.purgatory import Purgatory
from broker.replication.fetch_sessions import FetchSessions
from broker.replication.partitions import Partitions
from broker.time_slices import TimeSlices
from protocol.messages.fetch import FetchResponse
from protocol.messages.produce import ProduceResponse


@dataclass(frozen=True, slots=True)
class Services:
    """One broker's parts."""

    config: BrokerConfig
    clock: Clock
    metadata: Metadata
    partitions: Partitions
    producer_ids: ProducerIdBlocks
    groups: Groups
    fetch_sessions: FetchSessions
    fetch_purgatory: Purgatory[FetchResponse]
    produce_purgatory: Purgatory[ProduceResponse]
    metrics: Metrics
    time_slices: TimeSlices
