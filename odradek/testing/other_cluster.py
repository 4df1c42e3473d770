"""A cluster that `--kafka` names: its topics have names of their own for each test, and are deleted afterwards."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from odradek.testing.clients import Clients

_LOOK_SECONDS = 0.05
"""How long a wait sleeps before it asks again: a cluster does not report what others do in it."""


class OtherCluster:
    """Any cluster, which may have topics and users of its own: a `Cluster`.

    The topics that exist when the first test begins are those of the session, which are deleted with it; what tests
    change in them stays. Groups stay: the cluster removes those without offsets.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._of_session: dict[str, str] = {}
        self._of_test: dict[str, str] = {}
        self._has_begun = False

    def real_name(self, topic: str) -> str:
        return self._of_test.get(topic) or self._of_session.get(topic) or topic

    def may_have(self, topic: str) -> bool:
        names = {**self._of_session, **self._of_test}
        return topic in names or topic in names.values()

    def new_name(self, topic: str) -> str:
        names = self._of_test if self._has_begun else self._of_session
        name = names[topic] = f"{topic}-{uuid4().hex[:8]}"
        return name

    def time_ms(self) -> None:
        """Nothing: its clock is not moved."""

    async def begin_test(self, clients: Clients) -> None:  # noqa: ARG002 - of every cluster
        self._has_begun = True

    async def end_test(self, clients: Clients) -> None:
        await (await clients.admin()).delete_topics(self._of_test.values())
        self._of_test = {}

    async def end_session(self, clients: Clients) -> None:
        await (await clients.admin()).delete_topics(self._of_session.values())
        self._of_session = {}

    @property
    def changes(self) -> int:
        return 0

    async def change(self, since: int) -> None:  # noqa: ARG002 - of every cluster
        await asyncio.sleep(_LOOK_SECONDS)

    def report_lines(self) -> list[str]:
        return [f"the requests at {self.bootstrap} are not known: it is not this process's broker"]

    def unused_rules(self) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing: the cluster goes on."""
