"""Changing the properties of topics, and of brokers while they run."""

from __future__ import annotations

from collections.abc import Mapping

from broker.config.broker_config import PROPERTIES
from broker.config.types import InvalidValueError
from broker.metadata.metadata import Metadata
from broker.metadata.store import Cmp, Delete, Op, Put, still
from broker.metadata.topics import find_topic
from broker.metadata.values import encode_configs
from broker.topic_config import log_config, validate
from protocol.errors import ErrorCode, KafkaError

Changes = Mapping[str, str | None]
"""What to set; None takes a property back to where it comes from without it."""


async def alter_topic_configs(
    metadata: Metadata, name: str, changes: Changes, *, replace: bool = False, validate_only: bool = False
) -> None:
    """Change a topic's properties; with `replace` to nothing but `changes`.

    Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, KAFKA_STORAGE_ERROR.
    """
    node_id = metadata.config.node_id
    while True:
        image = metadata.image
        topic = find_topic(image, name=name)
        altered = _altered({} if replace else topic.configs, changes)
        validate(altered, log_config(metadata.config, image.dynamic_configs(node_id)))
        if validate_only:
            return
        key = metadata.keys.topic_config(name)
        when = (still(key, topic.configs_revision), still(metadata.keys.topic_name(name), topic.name_revision))
        if await _write(metadata, key, altered, when):
            return


async def alter_broker_configs(
    metadata: Metadata, node_id: int | None, changes: Changes, *, replace: bool = False, validate_only: bool = False
) -> None:
    """Change what is set at run time for one broker, or (None) for all.

    Raises `KafkaError` INVALID_REQUEST for a property that does not exist or only changes with a restart, or for a
    value that it cannot have; KAFKA_STORAGE_ERROR.
    """
    _check_dynamic(changes)
    while not validate_only:
        configs, revision = metadata.image.broker_configs.get(node_id, ({}, 0))
        key = metadata.keys.broker_config(node_id)
        if await _write(metadata, key, _altered({} if replace else configs, changes), (still(key, revision),)):
            return


def _altered(configs: Mapping[str, str], changes: Changes) -> dict[str, str]:
    altered = {**configs, **changes}
    return {name: text for name, text in altered.items() if text is not None}


def _check_dynamic(changes: Changes) -> None:
    for name, text in changes.items():
        row = PROPERTIES.get(name)
        if row is None:
            # Differs from Kafka, which stores any name: there are no plug-ins here that could have others.
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no broker property {name}")
        if not row.dynamic:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} cannot be changed while the broker runs")
        try:
            if text is not None:
                row.parse(text)
        except InvalidValueError as error:
            shown = "(hidden)" if row.sensitive else repr(text)
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} = {shown}: {error}") from None


async def _write(metadata: Metadata, key: bytes, configs: dict[str, str], when: tuple[Cmp, ...]) -> bool:
    op: Op = Put(key, encode_configs(configs)) if configs else Delete(key)
    return (await metadata.commit(when, (op,))).ok
