"""Create the topics of the example, and send the trips."""

from __future__ import annotations

from odradek.client import Admin, ClientError, NewTopic, Producer, TopicExistsError, UnknownTopicError
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.topic_sizes import count_records
from odradek.pipeline.options.broker_options import Cluster
from odradek.pipeline.taxi.revenue import REVENUE, TRIPS
from odradek.pipeline.taxi.trips import Trips
from odradek.protocol.plural import pluralize

_PARTITIONS = 4
_CHECKED_EVERY = 10_000  # records: an error is detected before all are sent
_TOPICS = [
    NewTopic(TRIPS, partitions=_PARTITIONS, configs={"retention.ms": "-1"}),  # the timestamps of trips are in the past
    NewTopic(REVENUE, partitions=_PARTITIONS, configs={"cleanup.policy": "compact"}),
]


async def fill(bootstrap_server: str, trips: Trips, *, overwrite: bool) -> None:
    """Create both topics and send all trips in the order of time.

    Raises `JobError` if a topic exists and may not be replaced, or if the cluster fails.
    """
    try:
        async with Admin(bootstrap_server) as admin:
            await _create_topics(admin, overwrite=overwrite)
        async with Producer(bootstrap_server, compression_type="lz4", linger_ms=20) as producer:
            for number, event in enumerate(trips.events()):
                sent = await producer.send(TRIPS, event.value, event.key, timestamp=event.sent * 1000)
                if number % _CHECKED_EVERY == 0:
                    await sent
            await producer.flush()
        stored = await count_records(Cluster(bootstrap_server, {}, 0), TRIPS)
    except ClientError as error:
        raise JobError(str(error)) from error
    if stored != len(trips):
        raise JobError(f"{TRIPS} has {pluralize(stored, 'record')}, not {len(trips)}")


async def _create_topics(admin: Admin, *, overwrite: bool) -> None:
    if overwrite:
        deleted = await admin.delete_topics([topic.name for topic in _TOPICS])
        for error in deleted.failed.values():
            if not isinstance(error, UnknownTopicError):
                raise error
    created = await admin.create_topics(_TOPICS)
    for name, error in created.failed.items():
        if isinstance(error, TopicExistsError):
            raise JobError(f"topic {name} exists; --overwrite deletes it first")
        raise error
