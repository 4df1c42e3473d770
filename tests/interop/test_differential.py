"""The same requests of admins and groups to Apache Kafka and to Odradek, with responses compared field by field.

The scripts are in `differential`; an accepted difference is marked at its request, with the reason. With `--server
apache` two Apache Kafkas are compared: fields that differ then must not be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.interop.conftest import KINDS
from tests.interop.differential import (
    cluster,
    configs,
    groups,
    partitions,
    quotas,
    topics,
    transactional_offsets,
    transactions,
)
from tests.interop.differential.playing import Server, Step, play
from tests.peers import server as peers

SAME_AS_REFERENCE = {"offsets.topic.num.partitions": "1"}
SCRIPTS = {
    "creating topics": topics.CREATING,
    "deleting topics": topics.DELETING,
    "the cluster": topics.CLUSTER,
    "growing": partitions.GROWING,
    "deleting records": partitions.DELETING_RECORDS,
    "placement": cluster.PLACEMENT,
    "descriptions": cluster.DESCRIPTIONS,
    "security": cluster.SECURITY,
    "client quotas": quotas.QUOTAS,
    "quotas of mutations": quotas.MUTATIONS,
    "configs of topics": configs.OF_TOPICS,
    "configs of brokers": configs.OF_BROKERS,
    "configs of groups": configs.OF_GROUPS,
    "members": groups.MEMBERS,
    "every version of a member": groups.JOINING,
    "static members": groups.STATIC_MEMBERS,
    "outsiders": groups.OUTSIDERS,
    "initialising producers": transactions.INITIALISING,
    "adding partitions to transactions": transactions.ADDING,
    "ending transactions": transactions.ENDING,
    "fencing transactions": transactions.FENCING,
    "producing in transactions": transactions.PRODUCING,
    "offsets in transactions": transactions.OFFSETS,
    "offsets in transactions of classic members": transactional_offsets.CLASSIC_MEMBERS,
    "offsets in transactions of consumers": transactional_offsets.CONSUMER_MEMBERS,
    "offsets in transactions and deletions": transactional_offsets.DELETIONS,
    "offsets in transactions and other types of groups": transactional_offsets.CONVERSIONS,
    "invalid commits in transactions": transactional_offsets.INVALID,
    "markers of transactions": transactions.MARKING,
    "listing transactions": transactions.LISTING,
    "levels of transaction.version": transactions.LEVELS,
}


@pytest.fixture(scope="module")
def subject(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[peers.Server]:
    """A server without the topics of other tests, since some requests list all topics."""
    server = KINDS[kind](tmp_path_factory.mktemp("subject"), SAME_AS_REFERENCE).start()
    yield server
    server.stop()


@pytest.mark.java
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_the_responses_are_equal(
    script: Sequence[Step], reference: peers.Server, subject: peers.Server, kind: str
) -> None:
    differences = await play(
        script, Server(reference.port, str(reference.log_dir)), Server(subject.port, str(subject.log_dir))
    )

    expected = {number for number, step in enumerate(script) if step.differs and kind == "odradek"}
    unexpected = {number: (script[number].request, differences[number]) for number in differences.keys() - expected}
    assert unexpected == {}
    assert expected - differences.keys() == set(), "these do not differ any more"
