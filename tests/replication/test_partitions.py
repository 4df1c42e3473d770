from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import BrokerImage, ImageChange, MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.leaders.lost_replicas import LostReplica
from odradek.broker.metadata.values import RUNNING, DeletedTopic
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.opening.log_opening import ZERO_TOPIC_ID
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import NOW, batch

SELF, OTHER = 1, 2
AN_ID, ANOTHER_ID = bytes([1] * 16), bytes([2] * 16)


def topic(
    name: str = "t", topic_id: bytes = AN_ID, *, count: int = 1, leader: int = SELF, epoch: int = 0, **configs: str
) -> TopicImage:
    partitions = [PartitionImage(leader, epoch, [leader], {leader: 1}, epoch) for _ in range(count)]
    return TopicImage(name, topic_id, partitions, {key.replace("_", "."): value for key, value in configs.items()})


def image(*topics: TopicImage, deleted: Iterable[bytes] = (), **fields: Any) -> MetadataImage:
    return MetadataImage(
        topics={each.name: each for each in topics},
        topics_by_id={each.topic_id: each for each in topics},
        deleted={topic_id: DeletedTopic("t", 0) for topic_id in deleted},
        **fields,
    )


@pytest.fixture
def failures() -> list[BaseException]:
    """The errors of the tasks of `partitions`; a test removes those that it expects."""
    return []


@pytest.fixture
def config() -> CurrentConfig:
    return CurrentConfig(BrokerConfig.load())


@pytest.fixture
def log_dirs(log_dir: LogDir) -> LogDirs:
    return LogDirs([log_dir])


@pytest.fixture
async def partitions(
    log_dirs: LogDirs, threads: DiskThreads, failures: list[BaseException], config: CurrentConfig
) -> AsyncIterator[Partitions]:
    tasks = BackgroundTasks(lambda _, error: failures.append(error))
    loop = asyncio.get_running_loop()
    made = Partitions(
        node_id=SELF,
        log_dirs=log_dirs,
        config=config,
        purgatories=[Purgatory("Fetch", loop, loop)],
        deletions=Purgatory("DeleteRecords", loop, loop),
        threads=threads,
        tasks=tasks,
        metrics=Metrics(),
        clock=SystemClock(),
    )
    yield made
    await made.settled()
    await tasks.stop()
    assert not failures


def apply(partitions: Partitions, image: MetadataImage) -> None:
    """Apply an image to partitions that have the image of `partitions.image`."""
    before = partitions.image
    partitions.apply(ImageChange(before, image, dict.fromkeys((*before.topics_by_id, *image.topics_by_id))))


async def applied(partitions: Partitions, image: MetadataImage) -> None:
    apply(partitions, image)
    await partitions.settled()


def refusal(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, match=code.name)


async def test_a_topic_of_the_image_is_led_when_it_has_been_applied(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic(count=2)))

    assert len(partitions) == 2
    assert partitions.get("t", 1).is_leader
    assert partitions.get_by_id(AN_ID, 1) is partitions.get("t", 1)
    assert log_dir.logs.keys() == {("t", 0), ("t", 1)}


async def test_partitions_outside_the_image_are_unknown(partitions: Partitions) -> None:
    await applied(partitions, image(topic()))

    for name, index in (("missing", 0), ("t", 1), ("t", -1)):
        with refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            partitions.get(name, index)
    with refusal(ErrorCode.UNKNOWN_TOPIC_ID):
        partitions.get_by_id(ANOTHER_ID, 0)
    with refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        partitions.get_by_id(AN_ID, 1)


async def test_partitions_of_other_brokers_are_not_led(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic(leader=OTHER)))

    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partitions.get("t", 0)
    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partitions.get_by_id(AN_ID, 0)
    assert not log_dir.logs


async def test_a_removed_topic_is_deleted_with_its_logs(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic(count=2)))
    await applied(partitions, image(deleted=[AN_ID]))

    assert len(partitions) == 0
    assert not log_dir.logs
    assert len(log_dir.deletions) == 2


async def test_the_logs_of_a_topic_that_is_gone_but_not_deleted_stay(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic()))
    partitions.get("t", 0).append_as_leader(batch(b"kept"), 1, NOW)

    await applied(partitions, image())

    with refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        partitions.get("t", 0)
    assert len(log_dir.deletions) == 0
    await applied(partitions, image(topic(epoch=1)))
    assert partitions.get("t", 0).log.log_end_offset == 1


async def test_a_log_in_the_way_of_a_new_topic_is_set_aside_unless_its_topic_was_deleted(
    partitions: Partitions, log_dir: LogDir
) -> None:
    await applied(partitions, image(topic()))
    partitions.get("t", 0).append_as_leader(batch(b"kept"), 1, NOW)

    await applied(partitions, image(topic(topic_id=ANOTHER_ID)))

    assert partitions.get("t", 0).log.log_end_offset == 0
    assert len(log_dir.deletions) == 0
    [stray] = log_dir.path.glob("t-0.*-stray")
    assert (stray / "00000000000000000000.log").stat().st_size > 0


@pytest.mark.parametrize("deletes", [True, False])
async def test_logs_of_topics_that_were_deleted_meanwhile_are_deleted(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir, deletes: bool
) -> None:
    for name, topic_id in (("deleted", AN_ID), ("stray", ANOTHER_ID)):
        log_dirs.create_log(name, 0, topic_id, LogConfig())
    await applied(partitions, image(deleted=[AN_ID]))

    partitions.sort_out_strays(deletes=deletes)
    await partitions.settled()

    assert log_dir.logs.keys() == ({("stray", 0)} if deletes else {("deleted", 0), ("stray", 0)})


async def test_other_logs_without_a_partition_are_set_aside_in_a_cluster(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    for name, topic_id in (("deleted", AN_ID), ("gone", ANOTHER_ID), ("t", ANOTHER_ID)):
        log_dirs.create_log(name, 0, topic_id, LogConfig())
    await applied(partitions, image(topic(topic_id=ANOTHER_ID, leader=OTHER), deleted=[AN_ID]))

    partitions.sort_out_strays(deletes=True, sets_aside=True)
    await partitions.settled()

    assert not log_dir.logs
    assert len(log_dir.deletions) == 1
    assert sorted(each.name.split(".")[0] for each in log_dir.path.glob("*-stray")) == ["gone-0", "t-0"]


async def test_a_log_that_a_later_image_needs_is_no_stray(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    log_dirs.create_log("t", 0, AN_ID, LogConfig())
    await applied(partitions, image(deleted=[AN_ID]))

    apply(partitions, image(topic(topic_id=ANOTHER_ID), deleted=[AN_ID]))
    partitions.sort_out_strays(deletes=True, sets_aside=True)
    await partitions.settled()

    assert log_dir.logs["t", 0].topic_id == ANOTHER_ID
    assert partitions.get("t", 0).log is log_dir.logs["t", 0]


async def test_a_partition_that_moved_to_another_broker_is_deleted(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic()))
    await applied(partitions, image(topic(leader=OTHER, epoch=1)))

    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partitions.get("t", 0)
    assert not log_dir.logs


async def test_a_topic_made_again_under_its_name_has_another_log(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic()))
    partitions.get("t", 0).append_as_leader(batch(b"old"), 1, NOW)

    await applied(partitions, image(topic(topic_id=ANOTHER_ID), deleted=[AN_ID]))

    assert partitions.get("t", 0).log.log_end_offset == 0
    assert log_dir.logs["t", 0].topic_id == ANOTHER_ID
    assert len(log_dir.deletions) == 1
    with refusal(ErrorCode.UNKNOWN_TOPIC_ID):
        partitions.get_by_id(AN_ID, 0)


async def test_the_old_log_is_deleted_before_the_new_one_is_created(partitions: Partitions) -> None:
    await applied(partitions, image(topic()))
    old = partitions.get("t", 0)
    appending = old.append_as_leader(batch(b"x" * LARGE_APPEND_BYTES), 1, NOW)
    assert isinstance(appending, asyncio.Future)

    apply(partitions, image(topic(topic_id=ANOTHER_ID), deleted=[AN_ID]))
    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partitions.get("t", 0)
    await partitions.settled()

    assert (await appending).base_offset == 0
    assert partitions.get("t", 0).log.log_end_offset == 0


async def test_images_take_effect_in_order_although_one_must_wait(partitions: Partitions) -> None:
    await applied(partitions, image(topic()))
    partitions.get("t", 0).append_as_leader(batch(b"x" * LARGE_APPEND_BYTES), 1, NOW)

    apply(partitions, image(deleted=[AN_ID]))
    apply(partitions, image(topic(topic_id=ANOTHER_ID), topic("u", bytes([3] * 16)), deleted=[AN_ID]))
    apply(partitions, image(topic("u", bytes([3] * 16)), deleted=[AN_ID, ANOTHER_ID]))
    await partitions.settled()

    assert [(partition.topic, partition.index) for partition in partitions] == [("u", 0)]


async def test_a_new_leader_epoch_is_applied(partitions: Partitions) -> None:
    await applied(partitions, image(topic()))
    await applied(partitions, image(topic(epoch=4)))

    assert partitions.get("t", 0).leader_epoch == 4


@pytest.mark.parametrize(("intact_since", "leads"), [(7, False), (1, True)])
async def test_a_broker_that_has_lost_records_does_not_lead_until_it_is_elected_again(
    partitions: Partitions, intact_since: int, leads: bool
) -> None:
    own = BrokerImage(SELF, 7, [], None, RUNNING, "", intact_since)
    await applied(partitions, image(topic(), registered={SELF: own}))

    assert partitions.get("t", 0).is_leader is leads

    elected = PartitionImage(SELF, 1, [SELF], {SELF: 7}, 1)
    await applied(partitions, image(TopicImage("t", AN_ID, [elected], {}), registered={SELF: own}))
    assert partitions.get("t", 0).is_leader


async def test_a_topics_configs_reach_its_logs(partitions: Partitions) -> None:
    await applied(partitions, image(topic(max_message_bytes="500")))
    assert partitions.get("t", 0).log.config.max_message_bytes == 500

    await applied(partitions, image(topic(max_message_bytes="700")))
    assert partitions.get("t", 0).log.config.max_message_bytes == 700


async def test_the_brokers_configs_reach_all_logs(partitions: Partitions, config: CurrentConfig) -> None:
    await applied(partitions, image(topic(count=2), topic("own", ANOTHER_ID, max_message_bytes="500")))
    config.apply(MetadataImage(broker_configs={None: ({"message.max.bytes": "900"}, 1)}))
    await partitions.settled()

    assert sorted(each.log.config.max_message_bytes for each in partitions) == [500, 900, 900]
    assert partitions.get("own", 0).log.config.max_message_bytes == 500


async def test_many_partitions_are_created_some_at_a_time(partitions: Partitions) -> None:
    apply(partitions, image(topic(count=300)))
    assert len(partitions) == 0
    await partitions.settled()

    assert sorted(partition.index for partition in partitions) == list(range(300))


async def test_partitions_with_existing_logs_are_led_at_once(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    log_dirs.create_log("t", 0, AN_ID, LogConfig())

    apply(partitions, image(topic()))

    assert partitions.get("t", 0).is_leader


async def test_a_log_of_an_older_topic_of_the_name_is_deleted_first(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    log_dirs.create_log("t", 0, ANOTHER_ID, LogConfig())

    await applied(partitions, image(topic(), deleted=[ANOTHER_ID]))

    assert log_dir.logs["t", 0].topic_id == AN_ID
    assert len(log_dir.deletions) == 1


def _with_other(isr: dict[int, int]) -> TopicImage:
    return TopicImage("t", AN_ID, [PartitionImage(OTHER, 0, [OTHER, SELF], isr, 0)], {})


async def test_a_log_whose_topic_id_is_lost_is_not_taken_while_another_replica_is_in_sync(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    """It may be of an older topic of the name, whose records would be served under the new id."""
    log_dirs.create_log("t", 0, ZERO_TOPIC_ID, LogConfig()).append_as_leader(batch(b"old"), 0, NOW)

    await applied(partitions, image(_with_other({OTHER: 1})))

    log = log_dir.logs["t", 0]
    assert (log.topic_id, log.log_end_offset) == (AN_ID, 0)
    assert partitions.get_by_id(AN_ID, 0).log is log


async def test_a_member_of_the_isr_whose_topic_id_is_lost_has_lost_its_log(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    log_dirs.create_log("t", 0, ZERO_TOPIC_ID, LogConfig())
    partitions.losses.are_reported = True
    registered = {SELF: BrokerImage(SELF, 5, [], None, RUNNING, "", 5)}

    await applied(partitions, image(_with_other({OTHER: 1, SELF: 1}), registered=registered))

    assert partitions.losses.all(()) == [LostReplica(AN_ID, 0, is_gone=True)]
    assert log_dir.logs["t", 0].topic_id == ZERO_TOPIC_ID


async def test_an_only_member_of_the_isr_takes_a_log_whose_topic_id_is_lost(
    partitions: Partitions, log_dirs: LogDirs, log_dir: LogDir
) -> None:
    log = log_dirs.create_log("t", 0, ZERO_TOPIC_ID, LogConfig())

    await applied(partitions, image(topic()))

    assert partitions.get_by_id(AN_ID, 0).log is log
    assert log.topic_id == AN_ID


async def test_after_a_disk_failure_new_partitions_are_refused(partitions: Partitions, log_dir: LogDir) -> None:
    await applied(partitions, image(topic()))
    log_dir.failure.fail("testing", OSError(5, "Input/output error"))
    partitions.log_dir_failed(log_dir)

    await applied(partitions, image(topic(), topic("u", ANOTHER_ID)))

    with refusal(ErrorCode.KAFKA_STORAGE_ERROR):
        partitions.get("u", 0)
    with refusal(ErrorCode.KAFKA_STORAGE_ERROR):
        partitions.get("t", 0).check_leader()


async def test_a_failed_change_fails_waiting_callers(partitions: Partitions, failures: list[BaseException]) -> None:
    with pytest.raises(ValueError, match="null"):
        await applied(partitions, image(topic("\0")))

    await applied(partitions, image(topic(), topic("u", ANOTHER_ID)))

    assert partitions.get("u", 0).is_leader
    assert [type(error) for error in failures] == [ValueError]
    failures.clear()
