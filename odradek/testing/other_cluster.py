"""Clusters that `--kafka` names, and their usual kind: each test has topics of its own names next to those of others.

`exact_names` has the other kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from uuid import uuid4

from odradek.client.admin.arguments import OffsetSpec
from odradek.client.record import TopicPartition
from odradek.testing.clients import Clients
from odradek.testing.reading import partitions_of

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

LOOK_SECONDS = 0.05
"""How long a wait sleeps before it asks again: a cluster does not report what others do in it."""


class OtherCluster:
    """What the two kinds share; with the names of topics and the removal of topics it is a `Cluster`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def time_ms(self) -> None:
        """Nothing: its clock is not moved."""

    @property
    def changes(self) -> int:
        return 0

    async def change(self, since: int) -> None:  # noqa: ARG002 - of every cluster
        await asyncio.sleep(LOOK_SECONDS)

    def report_lines(self) -> list[str]:
        return [f"the requests at {self.bootstrap} are not known: it is not this process's broker"]

    def unused_rules(self) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing: the cluster goes on."""


class OwnNames(OtherCluster):
    """Any cluster, which may have topics and users of its own: `orders` of a test is `orders-1c9f03aa` there.

    The topics that exist when the first test begins are those of the session, which are deleted with it; what tests
    change in them stays. Groups stay: the cluster removes those without offsets.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._of_session: dict[str, str] = {}
        self._of_test: dict[str, str] = {}
        self._has_begun = False
        self._ends_before: dict[str, dict[TopicPartition, int] | None] = {}

    def real_name(self, topic: str) -> str:
        return self._of_test.get(topic) or self._of_session.get(topic) or topic

    async def name_to_create(self, topic: str, clients: Clients) -> str:
        names = {**self._of_session, **self._of_test}
        if topic in names or topic in names.values():
            return self.real_name(topic)
        of_this = self._of_test if self._has_begun else self._of_session
        name = of_this[topic] = f"{topic}-{uuid4().hex[:8]}"
        self._ends_before[topic] = await _ends(clients, topic)
        return name

    async def mistakes(self, clients: Clients) -> list[str]:
        """Describe the topics that have a test's name itself, and have come or changed since the test gave the name."""
        lines = []
        for topic, before in self._ends_before.items():
            now = await _ends(clients, topic)
            if now is None or (before is not None and all(now.get(each, end) == end for each, end in before.items())):
                continue
            evidence = "which did not exist before" if before is None else "which has new records"
            lines.append(
                f"the program used {topic}, {evidence}; this test's topic is {self.real_name(topic)}: give the program"
                " the name that kafka.topic returned, or, if only tests use this cluster, run with --kafka-exact-names"
            )
        return lines

    async def begin_session(self, clients: Clients) -> None:
        """Nothing: what the cluster has is of no interest."""

    async def begin_test(self, clients: Clients) -> None:
        self._has_begun = True
        self._ends_before = {topic: await _ends(clients, topic) for topic in self._of_session}

    async def end_test(self, clients: Clients) -> None:
        names, self._of_test = self._of_test, {}
        await _delete(clients, names.values())

    async def end_session(self, clients: Clients) -> None:
        names, self._of_session = self._of_session, {}
        await _delete(clients, names.values())


async def _delete(clients: Clients, names: Collection[str]) -> None:
    if names:  # otherwise nothing connects
        await (await clients.admin()).delete_topics(names)


async def _ends(clients: Clients, topic: str) -> dict[TopicPartition, int] | None:
    """Return the end of each partition that has a leader, or None if the topic does not exist. Raises ClientError."""
    admin = await clients.admin()
    partitions = await partitions_of(admin, topic)
    if partitions is None:
        return None
    found = await admin.list_offsets(dict.fromkeys(partitions, int(OffsetSpec.LATEST)))
    return {partition: each.offset for partition, each in found.succeeded.items()}
