"""The topics that tests create, and the comparison with a topic that exists already."""

from __future__ import annotations

from odradek.client.admin.admin import Admin
from odradek.client.admin.arguments import ConfigResource, NewTopic
from odradek.protocol.plural import pluralize
from odradek.testing.arguments import Config, check_count, check_name, config_texts

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

_BROKERS_DEFAULT = -1
_MOST_PARTITIONS = (1 << 31) - 1  # an int32
_MOST_REPLICAS = (1 << 15) - 1  # an int16


def new_topic(
    name: str, partitions: int | None = None, config: Config | None = None, replication_factor: int | None = None
) -> NewTopic:
    """Return the topic that a test wants, with one partition by default. Raises TypeError and ValueError."""
    check_name("topic", name)
    if partitions is not None:
        check_count("partitions", partitions, 1, "leave it out for one partition", _MOST_PARTITIONS)
    if replication_factor is not None:
        cure = "leave it out for the broker's default"
        check_count("replication_factor", replication_factor, 1, cure, _MOST_REPLICAS)
    return NewTopic(
        name,
        1 if partitions is None else partitions,
        _BROKERS_DEFAULT if replication_factor is None else replication_factor,
        config_texts({} if config is None else config),
    )


async def check_existing(admin: Admin, name: str, wanted: NewTopic, *, any_partitions: bool) -> None:
    """Raise ValueError if the topic `name` exists in another form than the test wants. Raises ClientError.

    `wanted` has the name by which the test calls it.
    """
    called = wanted.name
    found = (await admin.describe_topics([name])).value(name)
    if not any_partitions and wanted.partitions != len(found.partitions):
        raise ValueError(
            f"the topic {called} exists with {pluralize(len(found.partitions), 'partition')}, not {wanted.partitions}"
        )
    replicas = len(found.partitions[0].replicas)
    if wanted.replication_factor not in (_BROKERS_DEFAULT, replicas):
        raise ValueError(
            f"the topic {called} exists with replication factor {replicas}, not {wanted.replication_factor}"
        )
    if not wanted.configs:
        return
    resource = ConfigResource.topic(name)
    entries = (await admin.describe_configs([resource])).value(resource)
    for key, value in wanted.configs.items():
        there = entries[key].value if key in entries else "no value"
        if there != value:
            raise ValueError(f"the topic {called} exists with {there} for {key}, not {value}")
