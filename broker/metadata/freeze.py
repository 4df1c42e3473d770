"""The freeze: while the store does not have this broker's cluster, the broker keeps the metadata that it has.

```
            record of the cluster gone, of another cluster; the store older than the image; any value unreadable
 ┌──────┐ ─────────────────────────────────────────────────────────────────────────────────────────► ┌────────┐
 │ live │                                                                                            │ frozen │
 └──────┘ ◄───────────────────────────────────────────────────────────────────────────────────────── └────────┘
            the record is there again, with the same id, and every value can be read: everything is read again
```

Somebody has emptied etcd, deleted the namespace or restored a backup under running brokers. No change that comes with
it is applied: brokers serve the partitions that they have, under the leaders that they have. Transactions wait for the
end of the freeze, or fail with their time limit: in an emptied store the same topic could be created a second time, and
the same producer ids allocated again.

A store that is older than the image stays refused until the broker starts again: its history is another one.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV, Batch, StoreError
from odradek.broker.metadata.values import decode_cluster
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

REMINDER_SECONDS: Final = 60.0
"""Seconds between two log lines about the same freeze."""


class Freeze:
    """Whether the metadata of one broker are frozen. `reason`: why; None if they are not."""

    def __init__(self, keys: Keys, cluster_id: str, counts: MetadataStoreCounts) -> None:
        self._keys = keys
        self._cluster_id = cluster_id
        self._counts = counts
        self._logged_at = 0.0
        self._older: str | None = None
        self._unreadable_at = 0
        self._over = asyncio.Event()
        self._over.set()
        self.reason: str | None = None
        self.record_revision = 0
        """The revision that created the record of the cluster, which transactions compare."""

    async def over(self) -> None:
        """Return when the metadata are not frozen."""
        await self._over.wait()

    def check(self, record: KV | None, revision: int, seen: int) -> bool:
        """Freeze unless the store at `revision` can be used; return whether it can.

        `record`: of the cluster; `seen`: the highest revision that this broker had seen before it was read.
        """
        if revision < seen and record is not None:
            self._older = f"the metadata store is at revision {revision}, and has been at {seen}: it is an older copy"
        reason = self._reason(record) or self._older
        if reason is not None:
            self._freeze(reason)
        elif record is not None:
            self.record_revision = record.create_revision
        return reason is None

    def check_batch(self, batch: Batch) -> bool:
        """Freeze if `batch` changes the cluster; return whether it may be applied."""
        for key, record in batch.changes:
            if key == self._keys.cluster and (reason := self._reason(record)) is not None:
                self._freeze(reason)
                return False
        return True

    def unreadable(self, error: StoreError, revision: int) -> None:
        """Freeze because the store at `revision` has a value that cannot be read."""
        self._unreadable_at = revision
        self._freeze(str(error))

    def is_unreadable(self, revision: int) -> bool:
        """Return whether the store has not changed since a value could not be read; reminds of the freeze."""
        if self.reason is None or revision != self._unreadable_at:
            return False
        self._freeze(self.reason)
        return True

    def thaw(self) -> None:
        """End the freeze, after the metadata have been read again."""
        if self.reason is not None:
            _LOG.warning("metadata are live again", cluster=self._cluster_id)
            self.reason = None
            self._over.set()

    def _reason(self, record: KV | None) -> str | None:
        prefix = self._keys.prefix.decode()
        if record is None:
            return f"the metadata store has no cluster under {prefix} any more"
        try:
            stored_id = decode_cluster(record.value).id
        except msgspec.MsgspecError as error:
            return f"the record of the cluster under {prefix} cannot be read: {error}"
        if stored_id != self._cluster_id:
            return f"the metadata store has cluster {stored_id} under {prefix}, this broker is of {self._cluster_id}"
        return None

    def _freeze(self, reason: str) -> None:
        now = asyncio.get_running_loop().time()
        if self.reason is None:
            self._counts.freezes += 1
            self._over.clear()
        elif self.reason == reason and now < self._logged_at + REMINDER_SECONDS:
            return
        self.reason = reason
        self._logged_at = now
        _LOG.error(
            "metadata are frozen: brokers serve what they have, and delete nothing; `odradek metadata show` has more",
            reason=reason,
        )
