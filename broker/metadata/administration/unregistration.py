"""The removal of a broker that has left the cluster for good."""

from __future__ import annotations

from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Delete, absent, still
from odradek.protocol.errors import ErrorCode, KafkaError


async def forget_broker(metadata: Metadata, node_id: int) -> None:
    """Delete what outlives a broker's registration, so that the next one of this id is a new broker.

    Raises `KafkaError` BROKER_ID_NOT_REGISTERED if there is no trace of it, INVALID_REQUEST while it runs,
    KAFKA_STORAGE_ERROR.
    """
    key = metadata.keys.broker_known(node_id)
    while True:
        if node_id in metadata.image.registered:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"broker {node_id} is running; stop it first")
        known = await metadata.read(key)
        if known is None:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {node_id} is not currently registered")
        when = (still(key, known.mod_revision), absent(metadata.keys.broker_id(node_id)))
        if (await metadata.commit(when, (Delete(key),))).ok:
            return
