"""The metadata store of all workers of one machine, in the first log directory: the supervisor owns and serves it.

It is the file of a broker that runs as one process, so that a broker becomes several, and one again. If Apache Kafka
has written the log directory, worker 0 adopts its topics, as a broker alone does.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import Task
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.adoption import adopter
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.shared.server import FILE_NAME as SOCKET_NAME
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.metadata.store.store import CompactedError, MetadataStore, Put, absent, read_key, still
from odradek.broker.metadata.values import ClusterRecord, encode
from odradek.broker.startup.surroundings import Worker
from odradek.broker.storage.checkpoints.meta_properties import read_meta_properties
from odradek.broker.storage.disk.files import OsFiles, make_directories


def worker_of(config: BrokerConfig) -> Worker:
    """Return what a worker of this configuration, that of all workers, shares with the others."""
    return Worker(os.uname().nodename, None if config.metadata_etcd_endpoints else _socket_path(config))


def _socket_path(config: BrokerConfig) -> Path:
    return Path(config.log_dirs[0], SOCKET_NAME).absolute()


@asynccontextmanager
async def served_store(config: BrokerConfig, clock: Clock) -> AsyncIterator[Task[None]]:
    """Own and serve the store within the block. Creates the log directory if need be.

    The yielded task ends with `StoreFailedError` if the store fails, on a broken disk for example: it never recovers,
    and a broker alone ends then. Raises `StoreFailedError` if the store cannot be opened, or another process has it;
    `MalformedFileError`, `OSError`.
    """
    directory, files = Path(config.log_dirs[0]), OsFiles()
    make_directories(files, str(directory))
    store = await SqliteStore.open(directory / FILE_NAME)
    try:
        await _prepare(store, config, clock)
        server = StoreServer(store, _socket_path(config))
        await server.start()
        failing = asyncio.get_running_loop().create_task(_follow(store), name="failure of the metadata store")
        try:
            yield failing
        finally:
            failing.cancel()
            await server.close()
    finally:
        await store.close()


async def _follow(store: MetadataStore) -> None:
    """Follow the store until it fails. Raises `StoreFailedError`."""
    while True:
        _, revision = await store.range(b"")
        try:
            async for _ in store.watch(b"", revision):
                pass
        except CompactedError:
            continue  # this task had to wait for long


async def _prepare(store: MetadataStore, config: BrokerConfig, clock: Clock) -> None:
    """Let the cluster begin, if the directory has an id and the store has none; worker 0 is the one that adopts."""
    keys = Keys(config.metadata_etcd_namespace)
    meta = read_meta_properties(OsFiles(), config.log_dirs[0])
    if meta is not None:
        record = ClusterRecord(meta.cluster_id, clock.time_ms())
        begun = (Put(keys.cluster, encode(record)), Put(keys.adopting, adopter(config.node_id)))
        await commit(store, (absent(keys.cluster),), begun)
    adopting, _ = await read_key(store, keys.adopting)
    if adopting is not None and not adopting.value:  # a broker alone was interrupted; any worker would take this up
        await commit(
            store, (still(keys.adopting, adopting.mod_revision),), (Put(keys.adopting, adopter(config.node_id)),)
        )
