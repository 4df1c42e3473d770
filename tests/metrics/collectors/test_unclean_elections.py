from __future__ import annotations

import pytest

from odradek.broker.metadata.image import BrokerImage, ImageChange, MetadataImage, PartitionImage, TopicImage
from odradek.broker.metrics.collectors.unclean_elections import UncleanElections
from odradek.broker.metrics.counts.metrics import Metrics

ID = b"t" * 16


def image(revision: int, partition: PartitionImage, *, controller: int = 1, intact_since: int = 10) -> MetadataImage:
    topic = TopicImage("t", ID, [partition])
    brokers = {
        node: BrokerImage(node, 50, [], None, "running", "", intact_since if node == 2 else 10) for node in (1, 2, 3)
    }
    return MetadataImage(
        revision,
        controller_id=controller,
        topics={"t": topic},
        topics_by_id={ID: topic},
        brokers=brokers,
        registered=brokers,
    )


def led(leader: int, epoch: int, isr: dict[int, int]) -> PartitionImage:
    return PartitionImage(leader, epoch, [1, 2, 3], isr, epoch)


def counted(before: PartitionImage, after: PartitionImage, *, controller: int = 1, intact_since: int = 10) -> int:
    metrics = Metrics()
    change = ImageChange(
        image(1, before), image(2, after, controller=controller, intact_since=intact_since), dict.fromkeys([ID])
    )
    UncleanElections(1, metrics).image_changed(change)
    return metrics.unclean_leader_elections


def test_a_leader_that_was_not_in_sync_is_counted() -> None:
    assert counted(led(-1, 4, {3: 30}), led(2, 5, {2: 50})) == 1
    assert counted(led(3, 4, {3: 30}), led(2, 5, {2: 50})) == 1


def test_a_leader_that_was_in_sync_and_has_lost_data_since_is_counted_if_others_may_have_them() -> None:
    assert counted(led(-1, 4, {2: 30, 3: 30}), led(2, 5, {2: 50}), intact_since=50) == 1
    assert counted(led(-1, 4, {2: 30}), led(2, 5, {2: 50}), intact_since=50) == 0, "no other replica has more"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (led(3, 4, {2: 30, 3: 30}), led(2, 5, {2: 30})),
        (led(3, 4, {2: 30, 3: 30}), led(3, 4, {3: 30})),
        (led(3, 4, {3: 30}), led(-1, 5, {3: 30})),
        (led(3, 4, {3: 30}), led(3, 4, {2: 50, 3: 30})),
    ],
    ids=["clean election", "shrink", "no leader", "expand"],
)
def test_other_changes_are_not_counted(before: PartitionImage, after: PartitionImage) -> None:
    assert counted(before, after) == 0


def test_only_the_controller_counts() -> None:
    assert counted(led(-1, 4, {3: 30}), led(2, 5, {2: 50}), controller=2) == 0


def test_a_topic_that_is_created_deleted_or_grown_counts_nothing() -> None:
    metrics = Metrics()
    elections = UncleanElections(1, metrics)
    full, grown = image(1, led(2, 0, {2: 50})), image(2, led(2, 0, {2: 50}))
    grown.topics_by_id[ID].partitions.append(led(3, 0, {3: 50}))
    for before, after in ((MetadataImage(), full), (full, grown), (full, MetadataImage(3, controller_id=1))):
        elections.image_changed(ImageChange(before, after, dict.fromkeys([ID])))
    assert metrics.unclean_leader_elections == 0
