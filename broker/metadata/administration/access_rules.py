"""Creating and deleting access rules. Any broker does it, in transactions of up to 100 rules.

A rule's key is made of its content, so both are idempotent: a rule that exists is not created again, and one that is
gone need not be deleted. All functions return when this broker's image has the outcome and all of its callbacks have
run, so that the next request is decided by it. After an error some of the rules may be created or deleted; so may they
be if `pause`, which is awaited before each transaction, has raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from odradek.broker.metadata.administration.topic_writes import Pause, no_pause
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Cmp, Delete, Op, Put, absent, still
from odradek.broker.metadata.stored_rules import encode_rule, rule_id
from odradek.broker.security.access.rule import AccessRule

RULES_PER_TRANSACTION = 100
BYTES_PER_TRANSACTION = 512 * 1024
"""Values of more bytes are another transaction: etcd takes 1.5 MiB at once."""


async def create_rules(metadata: Metadata, rules: Iterable[AccessRule], pause: Pause = no_pause) -> list[AccessRule]:
    """Create those of the rules that do not exist, and return them. The caller has checked them.

    Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, and what `pause` raises.
    """
    created = []
    for batch in _batches(list(dict.fromkeys(rules))):
        while True:
            await pause()
            stored = metadata.image.rules
            new = [rule for rule in batch if stored.find(rule) is None]
            keys = [metadata.keys.access_rule(rule_id(rule)) for rule in new]
            when = [absent(key) for key in keys]
            then = [Put(key, encode_rule(rule)) for key, rule in zip(keys, new, strict=True)]
            if await _commit(metadata, when, then):
                created += new
                break
            # Another broker has created some of them: try again with the others.
    return created


async def delete_rules(metadata: Metadata, rules: Iterable[AccessRule], pause: Pause = no_pause) -> list[AccessRule]:
    """Delete those of the rules that exist, and return them.

    Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, and what `pause` raises.
    """
    deleted = []
    for batch in _batches(list(dict.fromkeys(rules))):
        while True:
            await pause()
            stored = metadata.image.rules
            found = [each for each in map(stored.find, batch) if each is not None]
            keys = [metadata.keys.access_rule(rule_id(each.rule)) for each in found]
            when = [still(key, each.revision) for key, each in zip(keys, found, strict=True)]
            if await _commit(metadata, when, [Delete(key) for key in keys]):
                deleted += [each.rule for each in found]
                break
            # Another broker has deleted or created some of them anew: try again.
    return deleted


async def _commit(metadata: Metadata, when: Sequence[Cmp], then: Sequence[Op]) -> bool:
    return not then or (await metadata.commit(when, then)).ok


def _batches(rules: Sequence[AccessRule]) -> Iterator[list[AccessRule]]:
    batch: list[AccessRule] = []
    size = 0
    for rule in rules:
        rule_size = len(encode_rule(rule))
        if len(batch) == RULES_PER_TRANSACTION or (batch and size + rule_size > BYTES_PER_TRANSACTION):
            yield batch
            batch, size = [], 0
        batch.append(rule)
        size += rule_size
    if batch:
        yield batch
