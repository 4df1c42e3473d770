"""The values of the metadata store: JSON objects, one struct each. The keys are in `keys`.

A field that this version does not know is kept when the value is rewritten (`encode(new, previous)`): during an upgrade
versions share one store, and the older one must not undo what the newer one wrote.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

FEATURE_LEVEL = 1

STARTING = "starting"
RUNNING = "running"


class ClusterRecord(msgspec.Struct, frozen=True):
    """The cluster: its id (base64url), when it was created (ms), the least feature level that understands it."""

    id: str
    created: int
    feature_level: int = FEATURE_LEVEL


class ControllerRecord(msgspec.Struct, frozen=True):
    """Who the controller is."""

    broker: int
    incarnation: str


class Listener(NamedTuple):
    """An address that clients of one listener are told."""

    name: str
    protocol: str
    host: str
    port: int


class PreviousEpoch(msgspec.Struct, frozen=True):
    """The broker epoch of the incarnation before, and whether everything that it had acknowledged is still there."""

    epoch: int
    intact: bool


class BrokerRegistration(msgspec.Struct, frozen=True):
    """One incarnation of a broker.

    `intact_since`: what the broker acknowledged under this broker epoch or any later one is still there; 0 for its own
    epoch, which it does not know when it writes this.
    """

    listeners: list[Listener]
    rack: str | None
    incarnation: str
    lease: int
    boot_id: str
    state: str
    prev: PreviousEpoch | None = None
    intact_since: int = 0


class KnownBroker(msgspec.Struct, frozen=True):
    """What outlives a broker's registration, so that the next one can tell whether data was lost in between."""

    last_epoch: int
    log_dir: str
    boot_id: str
    clean_shutdown_epoch: int = 0
    intact_since: int = 0


class TopicRecord(msgspec.Struct, frozen=True):
    """A topic's name points to its id."""

    id: str
    partitions: int
    rf: int
    state: str = "ok"


class Assignment(msgspec.Struct, frozen=True):
    """Which brokers a partition's replicas belong on, preferred leader first."""

    replicas: list[int]
    adding: list[int] = []
    removing: list[int] = []


class PartitionState(msgspec.Struct, frozen=True):
    """Who leads a partition. Changes often, hence the short names.

    `isr` maps each in-sync replica to the broker epoch under which it was found in sync (KIP-903): a replica that
    came back empty has another one. `elr`: eligible leader replicas (KIP-966). `rec`: 1 after an unclean election.
    """

    leader: int = msgspec.field(name="l")
    leader_epoch: int = msgspec.field(name="e")
    isr: dict[int, int]
    partition_epoch: int = msgspec.field(name="pe")
    elr: list[int] = []
    rec: int = 0


class ProducerIds(msgspec.Struct, frozen=True):
    """The first producer id that no block has taken, and the broker (with its epoch) that took the last block."""

    next: int
    broker: int
    broker_epoch: int


decode_cluster = msgspec.json.Decoder(ClusterRecord).decode
decode_controller = msgspec.json.Decoder(ControllerRecord).decode
decode_registration = msgspec.json.Decoder(BrokerRegistration).decode
decode_known = msgspec.json.Decoder(KnownBroker).decode
decode_topic = msgspec.json.Decoder(TopicRecord).decode
decode_assignment = msgspec.json.Decoder(Assignment).decode
decode_partition_state = msgspec.json.Decoder(PartitionState).decode
decode_producer_ids = msgspec.json.Decoder(ProducerIds).decode
decode_configs = msgspec.json.Decoder(dict[str, str]).decode

_encode = msgspec.json.Encoder().encode


def encode(value: msgspec.Struct, previous: bytes = b"") -> bytes:
    """Return the JSON of `value`, with the fields of `previous`, which it replaces, that this version does not know."""
    if not previous:
        return _encode(value)
    known = {field.encode_name for field in msgspec.structs.fields(value)}
    unknown: dict[str, Any] = {
        name: content for name, content in msgspec.json.decode(previous).items() if name not in known
    }
    return _encode(msgspec.to_builtins(value, str_keys=True) | unknown) if unknown else _encode(value)


def encode_configs(configs: dict[str, str]) -> bytes:
    return _encode(configs)
