"""The choice of a metadata store by the configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.sqlite import SqliteStore
from odradek.broker.metadata.store.store import MetadataStore, StoreFailedError
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts


async def open_store(
    config: BrokerConfig,
    path: Path,
    clock: Clock,
    *,
    heartbeat: float = 2.0,
    counts: MetadataStoreCounts | None = None,
) -> MetadataStore:
    """Open the store in etcd if `config` has endpoints, else the one in the SQLite file at `path`.

    `heartbeat`: the most seconds between two signs of life in etcd; `counts` counts what happens there. Nothing is sent
    to etcd yet: `check` does that. Raises `StoreFailedError`.
    """
    if not config.metadata_etcd_endpoints:
        return await SqliteStore.open(path)
    try:
        from odradek.broker.metadata.store.etcd.store import EtcdStore
    except ImportError as error:
        raise StoreFailedError(
            f"metadata.etcd.endpoints needs grpcio ({error}): install it with `pip install 'odradek[cluster]'`"
        ) from error
    return EtcdStore(etcd_options(config, heartbeat, counts), clock)


@asynccontextmanager
async def shared_store(config: BrokerConfig, clock: Clock) -> AsyncIterator[MetadataStore]:
    """Open the store in etcd for a command. Raises `StoreError` if it cannot be used, or if `config` names none."""
    if not config.metadata_etcd_endpoints:
        raise StoreFailedError(
            "metadata.etcd.endpoints is not set: the metadata of a broker alone are in its first log directory, and"
            " need no repair"
        )
    store = await open_store(config, Path(), clock)
    try:
        await store.check(Keys(config.metadata_etcd_namespace).prefix)
        yield store
    finally:
        await store.close()


def etcd_options(config: BrokerConfig, heartbeat: float, counts: MetadataStoreCounts | None = None) -> EtcdOptions:
    """Return the options of the store in etcd. Raises `StoreFailedError` for a file that cannot be read."""
    return EtcdOptions(
        endpoints=tuple(config.metadata_etcd_endpoints),
        username=config.metadata_etcd_username or "",
        password=config.metadata_etcd_password or "",
        ca_certificates=_read("metadata.etcd.ca.file", config.metadata_etcd_ca_file),
        certificate=_read("metadata.etcd.certificate.file", config.metadata_etcd_certificate_file),
        key=_read("metadata.etcd.key.file", config.metadata_etcd_key_file),
        timeout=config.metadata_etcd_timeout_ms / 1000,
        heartbeat=heartbeat,
        counts=counts or MetadataStoreCounts(),
    )


def _read(name: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StoreFailedError(f"cannot read {name} = {path}: {error.strerror}") from error
