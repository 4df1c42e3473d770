from __future__ import annotations

from collections.abc import Iterable

import pytest

from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.values import KnownBroker
from odradek.broker.workers.layout import Fleet, SpreadRefusedError, alone_in_store, moves


def _image(**topics: Iterable[list[int]]) -> MetadataImage:
    """An image of topics with these replicas of each partition."""
    made = {
        name: TopicImage(
            name,
            name.encode(),
            [PartitionImage(each[0], 0, each, dict.fromkeys(each, 1), 0) for each in replicas],
        )
        for name, replicas in topics.items()
    }
    return MetadataImage(topics=made)


def _moves(
    image: MetadataImage, count: int, workers: Iterable[int] = range(5)
) -> dict[tuple[str, int], dict[int, int]]:
    found = moves(image, Fleet(1, [*workers]), count)
    return {(topic.name, partition): dict(to) for topic, partition, to in found}


def test_partition_i_goes_to_worker_i_modulo_their_number() -> None:
    image = _image(t=[[1]] * 7)
    assert _moves(image, 3) == {("t", 1): {0: 1}, ("t", 2): {0: 2}, ("t", 4): {0: 1}, ("t", 5): {0: 2}}


def test_a_partition_stays_where_it_belongs() -> None:
    assert _moves(_image(t=[[1], [1001], [2001], [1]]), 3) == {}


def test_topics_of_one_partition_go_to_the_worker_with_the_fewest() -> None:
    image = _image(**{name: [[1]] for name in "dcba"}, t=[[1], [1001]])
    assert _moves(image, 3) == {("a", 0): {0: 2}, ("c", 0): {0: 1}, ("d", 0): {0: 2}}


def test_a_topic_of_one_partition_stays_on_a_worker_with_the_fewest() -> None:
    assert _moves(_image(a=[[1001]], b=[[1]]), 2) == {}


def test_the_result_does_not_depend_on_the_order_of_the_image() -> None:
    topics = {name: [[1]] for name in "qwertz"}
    assert _moves(_image(**topics), 4) == _moves(_image(**dict(reversed(topics.items()))), 4)


def test_everything_goes_back_to_one_worker() -> None:
    image = _image(a=[[1001]], t=[[1], [1001], [2001]])
    assert _moves(image, 1) == {("a", 0): {1: 0}, ("t", 1): {1: 0}, ("t", 2): {2: 0}}


def test_replicas_of_other_machines_stay_and_do_not_count() -> None:
    image = _image(t=[[2, 1], [3, 2], [1, 1002]], a=[[2]], b=[[1, 2]])
    assert _moves(image, 3) == {("t", 2): {0: 2}, ("b", 0): {0: 1}}


def test_a_broker_of_another_machine_with_such_an_id_is_no_worker() -> None:
    assert _moves(_image(t=[[1], [1001]]), 1, workers=[0]) == {}


def test_of_several_replicas_here_only_those_on_removed_workers_move() -> None:
    image = _image(t=[[1, 1001], [1001, 2001], [3001, 1]])
    assert _moves(image, 3) == {("t", 2): {3: 2}}
    assert _moves(image, 2) == {("t", 1): {2: 0}, ("t", 2): {3: 1}}


def test_more_replicas_than_workers_are_refused() -> None:
    with pytest.raises(SpreadRefusedError, match=r"t-0 has 2 replicas on this machine, more than num\.workers = 1"):
        _moves(_image(t=[[1, 1001]]), 1)


def test_a_store_of_its_own_names_the_workers() -> None:
    known = {node: KnownBroker(1, "id", "") for node in (1, 3001)}
    image = MetadataImage(topics=_image(t=[[1], [2001]]).topics, known=known)
    assert alone_in_store(image, 1) == {0, 2, 3}


def test_replicas_are_counted_by_worker() -> None:
    assert Fleet(1, [0, 1, 2]).counts(_image(t=[[1, 2], [1001], [1001]])) == {0: 1, 1: 2, 2: 0}
