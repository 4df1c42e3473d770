"""Changes of partitions on an administrator's request: each is decided on the newest image until it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.leaders.state_changes import StateChange, transactions
from odradek.broker.metadata.metadata import Metadata
from odradek.protocol.errors import KafkaError

Item = TypeVar("Item")


async def change_on_request(
    metadata: Metadata,
    items: Sequence[Item],
    decide: Callable[[MetadataImage, Item], StateChange | None],
    on_written: Callable[[Sequence[StateChange]], None] = lambda _: None,
) -> list[KafkaError | None]:
    """Write the changes that `decide` returns, and return when the image has them: for each item its error, or None.

    `decide` raises the item's `KafkaError`, and returns None if nothing has to change. The items are of different
    partitions. `on_written` is called after each transaction. Raises `KafkaError` KAFKA_STORAGE_ERROR,
    REQUEST_TIMED_OUT.
    """
    errors: list[KafkaError | None] = [None] * len(items)
    undecided: Sequence[int] = range(len(items))
    while undecided:
        image = metadata.image
        changes: list[StateChange] = []
        numbers: dict[tuple[bytes, int], int] = {}
        for number in undecided:
            try:
                change = decide(image, items[number])
            except KafkaError as error:
                errors[number] = error.fresh()
            else:
                if change is not None:
                    changes.append(change)
                    numbers[change.topic.topic_id, change.partition_index] = number
        undecided = []
        for transaction in transactions(metadata.keys, image.brokers, changes):
            if (await metadata.commit(transaction.when, transaction.then)).ok:
                on_written(transaction.changes)
            else:  # a partition or a broker has changed meanwhile, and the image has that
                undecided = [
                    *undecided,
                    *[numbers[each.topic.topic_id, each.partition_index] for each in transaction.changes],
                ]
    return errors
