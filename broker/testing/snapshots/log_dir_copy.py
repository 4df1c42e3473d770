"""A log directory made from a snapshot, as a clean stop leaves it, for a broker that is stopped."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.sqlite import FILE_NAME, read_file, write_file
from odradek.broker.metadata.store.store import KV
from odradek.broker.metadata.values import decode_producer_ids
from odradek.broker.storage.checkpoints.clean_shutdown import write_clean_shutdown
from odradek.broker.storage.checkpoints.meta_properties import MetaProperties, write_meta_properties
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    partition_directory,
)
from odradek.broker.testing.snapshots.partition_copy import PartitionCopy


class ColdStore(NamedTuple):
    """What a start finds beside the logs: the metadata at `revision`, and the identity of each log directory."""

    keys: Keys
    kvs: list[KV]
    revision: int
    identities: tuple[MetaProperties, ...]
    broker_epoch: int


def write_log_dir(directory: Path, copies: Sequence[PartitionCopy], store: ColdStore, index: int) -> None:
    """Make `directory` the log directory of this number, whatever it holds. Raises `LogDirRefusedError`, `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    files, path = OsFiles(), str(directory)
    try:
        lock = files.lock(f"{path}/{LOCK}")
    except BlockingIOError:
        raise LogDirRefusedError(f"a broker is using the log directory {path}") from None
    try:
        kvs, revision = _not_older(store, directory / FILE_NAME)
        clear(directory)
        for each in copies:
            each.copy_to(f"{path}/{partition_directory(*each.key)}")
        write_meta_properties(files, path, store.identities[index])
        _write_checkpoints(path, copies)
        if index == 0:
            write_file(directory / FILE_NAME, kvs, revision)
        write_clean_shutdown(files, path, store.broker_epoch)
    finally:
        files.close(lock)


def clear(directory: Path) -> None:
    """Remove all that is in a log directory, but for its lock."""
    for each in directory.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != LOCK:
            each.unlink()


def _write_checkpoints(path: str, copies: Sequence[PartitionCopy]) -> None:
    files = OsFiles()
    ends = {each.key: each.state.log_end_offset for each in copies}
    starts = {each.key: each.state.log_start_offset for each in copies}
    cleaned = {each.key: each.state.cleaned_offset for each in copies}
    OffsetCheckpoint(files, path, RECOVERY_POINTS).write(lambda: ends)
    OffsetCheckpoint(files, path, HIGH_WATERMARKS).write(lambda: ends)
    OffsetCheckpoint(files, path, LOG_START_OFFSETS).write(lambda: starts)
    known = {key: offset for key, offset in cleaned.items() if offset is not None}
    if known:
        OffsetCheckpoint(files, path, CLEANER_OFFSETS).write(lambda: known)


def _not_older(store: ColdStore, path: Path) -> tuple[list[KV], int]:
    """The keys of the snapshot, with a revision and a next producer id not below those of the store at `path`."""
    kvs, revision = [kv for kv in store.kvs if not kv.lease], store.revision
    if not path.exists():
        return kvs, revision
    present, present_revision = read_file(path)
    counters = [kv for kv in (*kvs, *present) if kv.key == store.keys.next_producer_id]
    kvs = [kv for kv in kvs if kv.key != store.keys.next_producer_id]
    kvs += sorted(counters, key=lambda kv: decode_producer_ids(kv.value).next)[-1:]
    return kvs, max(revision, present_revision)
