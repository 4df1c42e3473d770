"""The values in the metadata store: JSON objects, a struct for each. The keys are in `keys`.

Rewriting a value keeps the fields that this version does not have (`encode(new, previous)`): during an upgrade two
versions share one store, and the older one must not delete what the newer one wrote.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

FEATURE_LEVEL = 1

STARTING = "starting"
RUNNING = "running"
DRAINING = "draining"
"""The states of a broker: it does not serve yet; it serves; it is stopping, and serves but leads nothing."""


class ClusterRecord(msgspec.Struct, frozen=True):
    """The cluster: its id (base64url), its creation time (ms), the least feature level that can read it."""

    id: str
    created: int
    feature_level: int = FEATURE_LEVEL


class ControllerRecord(msgspec.Struct, frozen=True):
    """The broker that is the controller."""

    broker: int
    incarnation: str


class Listener(NamedTuple):
    """The advertised address of one listener."""

    name: str
    protocol: str
    host: str
    port: int


class PreviousEpoch(msgspec.Struct, frozen=True):
    """The broker epoch of the previous incarnation; `intact`: everything that it acknowledged still exists."""

    epoch: int
    intact: bool


class BrokerRegistration(msgspec.Struct, frozen=True):
    """One incarnation of a broker.

    `intact_since`: everything that the broker acknowledged under this broker epoch or a later one still exists; 0 means
    its own epoch, which is unknown when this is written. `log_dirs`: the ids of all its log directories that work.
    `host`: the machine, if the broker shares it with other workers, which fail together; "": it fails alone.
    `software`: the version of this program. It can read feature levels from `min_feature_level` to
    `max_feature_level`, inclusive.
    """

    listeners: list[Listener]
    rack: str | None
    incarnation: str
    lease: int
    boot_id: str
    state: str
    prev: PreviousEpoch | None = None
    intact_since: int = 0
    log_dirs: list[str] = []
    host: str = ""
    software: str = ""
    min_feature_level: int = FEATURE_LEVEL
    max_feature_level: int = FEATURE_LEVEL


class KnownBroker(msgspec.Struct, frozen=True):
    """The part that outlives a broker's registration: from it, the next one computes whether data was lost.

    `log_dir` is the id of its first log directory, `log_dirs` has those of all. Replicas may be placed on a known
    broker that is down, for which rack and host are needed; DescribeCluster lists it with its last addresses.
    """

    last_epoch: int
    log_dir: str
    boot_id: str
    clean_shutdown_epoch: int = 0
    intact_since: int = 0
    rack: str | None = None
    log_dirs: list[str] = []
    listeners: list[Listener] = []
    host: str = ""


class TopicRecord(msgspec.Struct, frozen=True):
    """The value under a topic's name: its id and size."""

    id: str
    partitions: int
    rf: int
    state: str = "ok"


class DeletedTopic(msgspec.Struct, frozen=True):
    """A deleted topic: its name, and when it was deleted (ms). Only with this record may a broker delete its logs."""

    name: str
    deleted_ms: int


class Assignment(msgspec.Struct, frozen=True):
    """The brokers of a partition's replicas, preferred leader first."""

    replicas: list[int]
    adding: list[int] = []
    removing: list[int] = []


class PartitionState(msgspec.Struct, frozen=True):
    """The leader and the ISR of a partition. It changes often, hence the short names.

    `isr` maps each in-sync replica to its broker epoch when it joined the ISR (KIP-903): a replica that came back empty
    has another one. A negative epoch: in that incarnation the broker has lost its log, and it is the only member
    (`leaders.leadership`). `elr` does the same with the eligible leader replicas (KIP-966); its key is not `elr`,
    because earlier versions stored an empty list there. `rec`: 1 after an election that may have lost records, until
    all replicas are in sync: followers may have to remove what they had as committed.
    """

    leader: int = msgspec.field(name="l")
    leader_epoch: int = msgspec.field(name="e")
    isr: dict[int, int]
    partition_epoch: int = msgspec.field(name="pe")
    elr: dict[int, int] = msgspec.field(name="el", default_factory=dict)
    rec: int = 0


class ProducerIds(msgspec.Struct, frozen=True):
    """The first producer id that is in no block, and the broker (with its epoch) that reserved the last block."""

    next: int
    broker: int
    broker_epoch: int


decode_cluster = msgspec.json.Decoder(ClusterRecord).decode
decode_controller = msgspec.json.Decoder(ControllerRecord).decode
decode_registration = msgspec.json.Decoder(BrokerRegistration).decode
decode_known = msgspec.json.Decoder(KnownBroker).decode
decode_topic = msgspec.json.Decoder(TopicRecord).decode
decode_deleted_topic = msgspec.json.Decoder(DeletedTopic).decode
decode_assignment = msgspec.json.Decoder(Assignment).decode
decode_partition_state = msgspec.json.Decoder(PartitionState).decode
decode_producer_ids = msgspec.json.Decoder(ProducerIds).decode
decode_configs = msgspec.json.Decoder(dict[str, str]).decode
decode_levels = msgspec.json.Decoder(dict[str, int]).decode

_encode = msgspec.json.Encoder().encode


def encode(value: msgspec.Struct, previous: bytes = b"") -> bytes:
    """Return the JSON of `value`, and of the fields of the replaced `previous` that this version does not have."""
    if not previous:
        return _encode(value)
    known = value.__struct_encode_fields__
    unknown: dict[str, Any] = {
        name: content for name, content in msgspec.json.decode(previous).items() if name not in known
    }
    return _encode(msgspec.to_builtins(value, str_keys=True) | unknown) if unknown else _encode(value)


def encode_configs(configs: dict[str, str]) -> bytes:
    return _encode(configs)


def encode_levels(levels: dict[str, int]) -> bytes:
    return _encode(levels)
