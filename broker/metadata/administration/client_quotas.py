"""Changing client quotas (KIP-546), as Kafka's `ClientQuotaControlManager` does.

Each entity of a request succeeds or fails as a whole. One that is named twice is refused, but its first alteration
applies, as in Kafka; a kind of limit that is named twice refuses the entity. Removing a limit that does not exist
succeeds. `quotas.entities` has the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from odradek.broker.metadata.administration.topic_writes import Pause, no_pause
from odradek.broker.metadata.client_quotas import encode_limits, quota_key
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Delete, Op, Put, still
from odradek.broker.quotas.entities import Entity, describe, entity_problem, value_problem

ENTITIES_PER_TRANSACTION: Final = 60
"""A comparison and an operation for each, of the 128 that a transaction may have."""


class Alteration(NamedTuple):
    """The limits of one entity to set, or with None to remove."""

    entity: Entity
    limits: Sequence[tuple[str, float | None]]


async def alter_client_quotas(
    metadata: Metadata,
    alterations: Iterable[Alteration],
    *,
    validate_only: bool = False,
    pause: Pause = no_pause,
) -> dict[Entity, str | None]:
    """Apply the valid alterations. Return by entity why it was refused (INVALID_REQUEST), or None.

    `pause` lets others run between two alterations.

    Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT; some of the alterations may then be applied.
    """
    outcomes: dict[Entity, str | None] = {}
    valid: list[tuple[Entity, dict[str, float | None]]] = []
    for entity, limits in alterations:
        await pause()
        changes = dict(limits)
        if entity in outcomes or len(changes) < len(limits):
            outcomes[entity] = f"Ignoring duplicate entity {describe(entity)}"
            continue
        outcomes[entity] = _problem(entity, changes)
        if outcomes[entity] is None:
            valid.append((entity, changes))
    if not validate_only:
        for start in range(0, len(valid), ENTITIES_PER_TRANSACTION):
            await _write(metadata, valid[start : start + ENTITIES_PER_TRANSACTION])
    return outcomes


def _problem(entity: Entity, changes: Mapping[str, float | None]) -> str | None:
    problem = entity_problem(entity)
    if problem is not None:
        return problem
    problems = (value_problem(entity, kind, value) for kind, value in changes.items() if value is not None)
    return next((each for each in problems if each is not None), None)


async def _write(metadata: Metadata, alterations: Sequence[tuple[Entity, Mapping[str, float | None]]]) -> None:
    keys = metadata.keys
    while True:
        stored = metadata.image.client_quotas
        when, then = [], list[Op]()
        for entity, changes in alterations:
            present, revision = stored.get(entity, ({}, 0))
            merged = {**present, **changes}
            after = {kind: value for kind, value in merged.items() if value is not None}
            if after == present:
                continue
            key = quota_key(keys, entity)
            when.append(still(key, revision))
            then.append(Put(key, encode_limits(after)) if after else Delete(key))
        if not then or (await metadata.commit(when, then)).ok:
            return
