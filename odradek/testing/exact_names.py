"""A cluster of `--kafka` with `--kafka-exact-names`: only tests use it, so topics have the names that the tests say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from odradek.client.admin.admin import Admin
from odradek.client.errors import BrokerError, ClientError
from odradek.protocol.errors import ErrorCode
from odradek.testing.clients import Clients
from odradek.testing.errors import KafkaTimeoutError
from odradek.testing.other_cluster import LOOK_SECONDS, OtherCluster

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

_DELETION_SECONDS = 10.0


class _Content(NamedTuple):
    topics: frozenset[tuple[str, str]]  # name and id: a topic that is made again is another one
    groups: frozenset[str]


class ExactNames(OtherCluster):
    """A cluster that only the tests of this process use: a `Cluster`.

    ```
    begin_session ─► baseline ─► begin_test ─► test ─► end_test ─► test ─► end_test ─► end_session
          │                          │                    │                   │            │
    what is there           what has come since      what has come       the same     the baseline's
    is of others: it stays  is the baseline's        since is deleted                 is deleted
    ```
    This is about topics and groups. A group that still has members stays until they have left it.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._of_others: _Content | None = None
        self._before_test: _Content | None = None
        self._created: set[str] = set()

    def real_name(self, topic: str) -> str:
        return topic

    async def name_to_create(self, topic: str, clients: Clients) -> str:  # noqa: ARG002 - of every cluster
        assert self._of_others is not None
        if topic in {name for name, _ in self._of_others.topics}:
            raise ValueError(
                f"the topic {topic} was at {self.bootstrap} before the first test, so the tests may neither change nor"
                " delete it: delete it yourself if an earlier run was killed and left it, or run without"
                " --kafka-exact-names"
            )
        self._created.add(topic)
        return topic

    async def mistakes(self, clients: Clients) -> list[str]:  # noqa: ARG002 - of every cluster
        return []

    async def begin_session(self, clients: Clients) -> None:
        self._of_others = await self._content(await clients.admin())

    async def begin_test(self, clients: Clients) -> None:
        if self._before_test is None:
            self._before_test = await self._content(await clients.admin())

    async def end_test(self, clients: Clients) -> None:
        assert self._before_test is not None
        await self._delete_all_but(self._before_test, await clients.admin())

    async def end_session(self, clients: Clients) -> None:
        if self._of_others is not None:
            await self._delete_all_but(self._of_others, await clients.admin())

    async def _content(self, admin: Admin) -> _Content:
        return _Content(await self._topics(admin), frozenset(await admin.list_groups()))

    async def _topics(self, admin: Admin) -> frozenset[tuple[str, str]]:
        """Return the topics but those of the cluster itself: it does not mark all of these as internal."""
        return frozenset(
            (name, listing.topic_id)
            for name, listing in (await admin.list_topics()).items()
            if name in self._created or not name.startswith("__")
        )

    async def _delete_all_but(self, kept: _Content, admin: Admin) -> None:
        """Return when the topics are gone, so that their names are free. Raises ClientError, KafkaTimeoutError."""
        groups = frozenset(await admin.list_groups()) - kept.groups
        results = await admin.delete_groups(groups)
        _raise_other(results.failed, ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND)
        left: list[str] = []
        pause = 0.0  # most topics are gone with the answer
        limit = asyncio.timeout(_DELETION_SECONDS)
        try:
            async with limit:
                while left := sorted(name for name, _ in await self._topics(admin) - kept.topics):
                    await asyncio.sleep(pause)
                    _raise_other((await admin.delete_topics(left)).failed, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    pause = LOOK_SECONDS
        except TimeoutError:
            if not limit.expired():
                raise
            raise KafkaTimeoutError(
                f"{', '.join(left)} came back after each deletion at {self.bootstrap} for {_DELETION_SECONDS:g} s:"
                " close the clients of a test before it ends, because those that go on create topics again"
            ) from None


def _raise_other(failed: Mapping[str, ClientError], *expected: ErrorCode) -> None:
    for error in failed.values():
        if not (isinstance(error, BrokerError) and error.code in expected):
            raise error
