"""Snapshots of a running broker, and the return to them without a restart: same port, same cluster and topic ids.

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

```python
snapshots = Snapshots(broker)
state = await snapshots.snapshot()
...                               # clients produce, commit, create and delete topics
await snapshots.restore(state)    # as often, and with as many snapshots, as needed
```

The result of a restore is that of a start on a copy of the log directory, with three exceptions: the counter of
producer ids is not set back, idempotent producers are forgotten in every partition, so that those which live go on
with any sequence, and leader epochs do not fall. Connections are closed. No request of before touches the restored
state: those that wait for others are discarded, appends end first.

After a restore that raised, the state is undefined, and the broker must be stopped.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

from odradek.broker.broker import Broker
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.embedded import EmbeddedStore
from odradek.broker.metadata.store.store import KV
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partitions import Partitions
from odradek.broker.replication.reopening import reopen
from odradek.broker.storage.log import Log
from odradek.broker.testing.snapshots.log_dir_copy import ColdStore, write_log_dir
from odradek.broker.testing.snapshots.metadata_rewrite import MetadataCopy
from odradek.broker.testing.snapshots.partition_copy import PartitionCopy, copy_partition
from odradek.broker.testing.snapshots.snapshot_root import SnapshotRoot
from odradek.broker.testing.snapshots.writer_stall import writers_stalled

_TRIES: Final = 100
"""Each comes after the topics that were created meanwhile."""


class Snapshot:
    """The state of a broker at one moment; `Snapshots` makes it. Its files are in a directory for each log directory.

    They are removed by `discard`, or with the process. `metadata` has the keys that a restore puts back.
    """

    def __init__(self, roots: list[SnapshotRoot], metadata: MetadataCopy, store: ColdStore) -> None:
        self.metadata = metadata
        self.partitions: dict[tuple[str, int], PartitionCopy] = {}
        self.is_discarded = False
        self._roots = roots  # they live as long as a snapshot does
        self._store = store
        self.directories: list[Path] = []
        for root in roots:
            self.directories.append(root.new_directory())

    def discard(self) -> None:
        """Remove the files; the snapshot cannot be used any more. May be repeated."""
        self.is_discarded = True
        self.partitions.clear()
        for directory in self.directories:
            shutil.rmtree(directory, ignore_errors=True)

    def copy_to(self, *directories: str | Path) -> None:
        """Make log directories of the snapshot, as many as the broker has, for a broker that starts on them.

        A directory may be that of the stopped broker: what it holds is removed, but for the counter of producer ids.
        Raises `LogDirRefusedError` if a broker uses it, and `ValueError` for a discarded snapshot.
        """
        self.check()
        if len(directories) != len(self.directories):
            raise ValueError(f"name as many directories as the broker has in log.dirs: {len(self.directories)}")
        for index, directory in enumerate(directories):
            copies = [each for each in self.partitions.values() if each.log_dir_index == index]
            write_log_dir(Path(directory), copies, self._store, index)

    def check(self) -> None:
        """Raise `ValueError` if the snapshot was discarded."""
        if self.is_discarded:
            raise ValueError("the snapshot was discarded")


class Snapshots:
    """The snapshots of a broker that is alone; both coroutines run on its event loop, one at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._turn = asyncio.Lock()
        self._roots: list[SnapshotRoot] = []
        self._taken: list[Snapshot] = []

    async def snapshot(self) -> Snapshot:
        """Take a snapshot. Raises `RuntimeError` if the broker has failed, or belongs to a cluster of several."""
        async with self._turn:
            partitions = self._partitions()
            for _ in range(_TRIES):
                await partitions.settled()
                async with writers_stalled(partitions.threads):
                    if self._is_complete():
                        return self._take(await self._stored())
            raise RuntimeError("some partitions have no log: topics are created all the time, or could not be created")

    async def restore(self, snapshot: Snapshot) -> None:
        """Bring the broker back to a snapshot, and return when clients are served.

        Raises `RuntimeError` if the broker has failed: stop it, use `Snapshot.copy_to`, and start it again. Raises
        `ValueError` if the snapshot was discarded or is of another broker.
        """
        async with self._turn:
            snapshot.check()
            if snapshot not in self._taken:
                raise ValueError("the snapshot is of another broker")
            partitions = self._partitions()
            connections = self._broker.connections
            await connections.interrupt("a snapshot is restored")
            try:
                await self._restore(snapshot, partitions)
            finally:
                connections.resume()

    def close(self) -> None:
        """Discard all snapshots, and remove their directory; the end of the process does that, too."""
        for snapshot in self._taken:
            snapshot.discard()
        for root in self._roots:
            root.remove()
        self._taken, self._roots = [], []

    # ------------------------------------------------------------------------------------------------------ taking

    def _partitions(self) -> Partitions:
        """The partitions of the broker, if it can be used."""
        broker = self._broker
        if broker.services.metadata.is_shared:
            raise RuntimeError("snapshots are for a broker that is alone")
        if broker.failed.is_set() or broker.log_dirs.offline:
            raise RuntimeError("the broker has failed: stop it, and start it on Snapshot.copy_to(its log directory)")
        return broker.services.partitions

    def _is_complete(self) -> bool:
        """Whether every partition in the metadata has its log: topics are created and deleted in steps."""
        image, logs = self._broker.services.metadata.image, self._broker.log_dirs.logs
        return all(
            (name, index) in logs and logs[name, index].topic_id == topic.topic_id
            for name, topic in image.topics.items()
            for index in range(len(topic.partitions))
        )

    async def _stored(self) -> tuple[list[KV], int]:
        """The keys of the metadata and their revision; an embedded store answers without a turn of the event loop."""
        metadata = self._broker.services.metadata
        return await metadata.store.range(metadata.keys.prefix)

    def _take(self, stored: tuple[list[KV], int]) -> Snapshot:
        metadata, log_dirs = self._broker.services.metadata, self._broker.log_dirs
        if not self._roots:
            self._roots = [SnapshotRoot(directory.path) for directory in log_dirs.directories]
        copy = MetadataCopy(metadata.keys, stored[0])
        store = ColdStore(
            metadata.keys, *stored, tuple(each.meta for each in log_dirs.directories), metadata.broker_epoch
        )
        snapshot = Snapshot(self._roots, copy, store)
        for topic in metadata.image.topics.values():
            for index in range(len(topic.partitions)):
                log_dir = log_dirs.directory_of(topic.name, index)
                assert log_dir is not None  # `_is_complete`
                number = log_dirs.directories.index(log_dir)
                log = log_dirs.logs[topic.name, index]
                kept = copy_partition(log, number, str(snapshot.directories[number]))
                snapshot.partitions[kept.key] = kept
        self._taken = [*(each for each in self._taken if not each.is_discarded), snapshot]
        return snapshot

    # ---------------------------------------------------------------------------------------------------- restoring

    async def _restore(self, snapshot: Snapshot, partitions: Partitions) -> None:
        services = self._broker.services
        await services.transactions.unload()
        await services.groups.unload()
        await partitions.settled()
        await partitions.drained()
        async with writers_stalled(partitions.threads):
            self._restore_logs(snapshot, partitions)
        await self._restore_metadata(snapshot, services.metadata)
        await partitions.settled()
        services.fetch_sessions.clear()
        services.throttling.quotas.forget()
        await services.groups.reload()
        await services.transactions.reload()

    def _restore_logs(self, snapshot: Snapshot, partitions: Partitions) -> None:
        log_dirs = self._broker.log_dirs
        config = self._broker.services.metadata.current_config.log_config()  # until the topic's own is applied
        for kept in snapshot.partitions.values():
            log = log_dirs.logs.get(kept.key)
            if log is not None and kept.can_truncate(log):
                if not kept.truncate(log):
                    continue
                self._forget_truncated(log)
            else:
                log = kept.put_back(log_dirs, config)
            partition = partitions.find_by_id(kept.topic_id, kept.partition)
            if isinstance(partition, Partition):
                reopen(partitions, partition, log)

    def _forget_truncated(self, log: Log) -> None:
        """Let no other snapshot take what is appended from now on for what it has of this log."""
        for snapshot in self._taken:
            for kept in snapshot.partitions.values():
                if kept.log is log and kept.state.log_end_offset > log.log_end_offset:
                    kept.log = None

    async def _restore_metadata(self, snapshot: Snapshot, metadata: Metadata) -> None:
        store, node_id, now_ms = metadata.store, metadata.config.node_id, metadata.clock.time_ms()
        assert isinstance(store, EmbeddedStore)  # the broker is alone
        result = await store.rewrite(
            lambda now: snapshot.metadata.operations(now, node_id, metadata.broker_epoch, now_ms)
        )
        await metadata.wait_for_revision(result.revision)
