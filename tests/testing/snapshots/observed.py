"""All of a broker that clients can see, to compare with that of another broker or of another moment."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from odradek.broker.broker import Broker
from odradek.broker.coordinator.group_type import CLASSIC
from odradek.broker.replication.partition import Partition
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.wire import Wire

NO_OFFSET = NO_EPOCH = -1


async def observed(broker: Broker) -> dict[str, Any]:
    """Topics with ids and configs, logs byte by byte, bounds, groups, commits, transactions, configurations."""
    services = broker.services
    image = services.metadata.image
    async with Wire("127.0.0.1", broker.port) as wire:
        groups = {
            group_id: await _described(wire, group_id, group.group_type)
            for shard in services.groups.shards()
            for group_id, group in shard.groups.items()
        }
    return {
        "cluster": image.cluster_id,
        "topics": {
            name: (topic.topic_id, topic.configs, len(topic.partitions)) for name, topic in image.topics.items()
        },
        "logs": {f"{each.topic}-{each.index}": log_of(each) for each in services.partitions},
        "groups": groups,
        "commits": {
            group_id: {(topic, index): commit for topic, index, commit in shard.offsets.commits_of(group_id)}
            for shard in services.groups.shards()
            for group_id in shard.groups
        },
        "transactions": {
            name: replace(state, last_producer_epoch=NO_EPOCH)  # which no record has
            for shard in services.transactions.shards()
            for name, state in shard.transactions.items()
        },
        "group configs": {name: configs for name, (configs, _) in image.group_configs.items()},
        "broker configs": {node: configs for node, (configs, _) in image.broker_configs.items()},
        "topic configs": {name: configs for name, (configs, _) in image.topic_configs.items()},
        "features": image.features,
    }


async def _described(wire: Wire, group_id: str, group_type: str) -> Any:
    if group_type == CLASSIC:
        return (await wire.ask(DescribeGroupsRequest([group_id]), 5)).groups
    return (await wire.ask(ConsumerGroupDescribeRequest([group_id]), 1)).groups


def log_of(partition: Partition) -> dict[str, Any]:
    log = partition.log
    start, end = log.log_start_offset, log.log_end_offset
    chunks = []
    offset = start
    while offset < end:
        with log.read(offset, 1 << 24, end) as data:
            chunks.append(data.read())
            offset = log.segments.from_offset(offset)[1].base_offset if data.length and _more(log, offset) else end
    return {
        "start": start,
        "end": end,
        "high watermark": partition.high_watermark,
        "stable": partition.readable_end_offset(read_committed=True),
        "batches": b"".join(chunks),
        "aborted": sorted(log.aborted_transactions(start, end)),
        "by time": [log.offset_for_timestamp(timestamp) for timestamp in (0, 1_700_000_000_000, 1_700_000_000_007)],
        "latest": log.max_timestamp_offset(),
        "open": sorted(
            (each.producer_id, each.epoch, each.transaction_first_offset)
            for each in log.producers
            if each.transaction_first_offset != NO_OFFSET and start < end  # a start keeps none in an empty log
        ),
        "epochs": [each for each in log.leader_epochs if each.start_offset < end],  # a start drops the others
        "leads": partition.is_leader,
    }


def _more(log: Any, offset: int) -> bool:
    return len(log.segments.from_offset(offset)) > 1


async def cold_start(broker: Broker, copy: Path, properties: Mapping[str, str]) -> dict[str, Any]:
    """What is seen of a broker that starts on a copy of the log directory, as it was `copied`."""
    async with Broker({**properties, "log.dirs": str(copy)}) as other:
        await until_loaded(other)
        return await observed(other)


async def until_loaded(broker: Broker) -> None:
    """Return when the broker has loaded its groups and transactions."""
    while broker.services.groups.is_loading or broker.services.transactions.is_loading:  # noqa: ASYNC110 - turns
        await asyncio.sleep(0)


def copied(broker: Broker, target: Path) -> Path:
    """Copy the log directory as a killed broker would leave it now."""
    shutil.copytree(broker.log_dir.path, target, ignore=shutil.ignore_patterns(".lock"))
    return target
