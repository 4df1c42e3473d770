"""The metadata store of a single node: SQLite in one file of the log directory.

```
<log.dir>/odradek-metadata.sqlite
  kv(key, value, create_revision, mod_revision, lease)      the current state; the history is kept in memory only
  store(revision)                                           one row
  PRAGMA application_id = "odra", user_version = 1
```

It is a plain file, because Apache Kafka ignores unknown files, but does not start on a log directory with a
subdirectory that is not a partition.

WAL with synchronous=FULL: a transaction is on disk when it is answered (0.2 ms). One thread makes all accesses, so that
no fsync blocks the event loop. Reads are served from memory.

It has credentials, so only its owner may read it: mode 0600, also of the files that SQLite writes beside it. `open`
narrows what an earlier version created; where that is impossible (another owner, a file system without modes), the log
has a warning.

A lock on the file (`flock`) ensures that one process at a time uses it: a broker alone, the supervisor of several
workers, or a command. So a session ends with its process:
`open` deletes keys under a lease, whose process has ended. Leases begin at a random number, because another process may
still send a transaction with a lease of before (`shared`): it must not be the lease of somebody else by now.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from odradek.broker.metadata.store.embedded import EmbeddedSession, EmbeddedStore
from odradek.broker.metadata.store.store import KV, Batch, Change, Session, StoreFailedError
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.names import METADATA_STORE
from odradek.broker.structured_logging import StructuredLogger

T = TypeVar("T")

_LOG = StructuredLogger(__name__)

FILE_NAME = METADATA_STORE
_APPLICATION_ID = int.from_bytes(b"odra")
_VERSION = 1
_LEASE_BYTES = 7
"""An SQLite integer has 8, with a sign."""

_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_BESIDE = ("-wal", "-shm")
"""SQLite creates these with the mode of the file that they belong to."""

_MAX_OPERATIONS = 1024
"""340 topics with one partition. Their transaction and image block the event loop for some 10 ms."""

_SCHEMA = (
    "BEGIN IMMEDIATE",
    (
        "CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB NOT NULL, create_revision INTEGER NOT NULL,"
        " mod_revision INTEGER NOT NULL, lease INTEGER NOT NULL) WITHOUT ROWID"
    ),
    "CREATE TABLE store (revision INTEGER NOT NULL)",
    "INSERT INTO store VALUES (0)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
    "COMMIT",
)


def copy_store(path: Path, directory: Path) -> None:
    """Copy the file at `path`, and the write-ahead log of a killed process, if they exist."""
    for source in (path, path.with_name(f"{path.name}-wal")):
        if source.exists():
            target = directory / source.name
            target.touch(_PRIVATE)
            shutil.copyfile(source, target)


def read_file(path: Path) -> tuple[list[KV], int]:
    """Return all keys of the file at `path` and its revision, without a change; a broker may be using it.

    Raises `StoreFailedError`.
    """
    if not path.exists():
        raise StoreFailedError(f"{path} does not exist: no broker alone has run with these log.dirs")
    # Without a write-ahead log nobody writes, and SQLite need not create files beside it to make that sure.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
        ) as connection:
            connection.execute("BEGIN")  # both queries see one state
            revision = connection.execute("SELECT revision FROM store").fetchone()[0]
            return [KV(*row) for row in connection.execute("SELECT * FROM kv ORDER BY key")], revision
    except (sqlite3.Error, TypeError) as error:
        raise StoreFailedError(f"cannot read the metadata in {path}: {error}") from error


def write_file(path: Path, kvs: Iterable[KV], revision: int) -> None:
    """Create the file at `path`, which does not exist, with these keys, as a clean stop leaves it.

    Raises `StoreFailedError`.
    """
    database = _Database(path, synced=True)
    try:
        database.open()
        database.commit(Batch(revision, tuple(Change(kv.key, kv) for kv in kvs)))
    except sqlite3.Error as error:
        raise StoreFailedError(f"cannot write the metadata to {path}: {error}") from error
    finally:
        database.close()


def _make_private(path: Path) -> None:
    """Create the file at `path` if it is missing, and forbid others to read it or what is beside it."""
    try:
        path.touch(_PRIVATE, exist_ok=False)
    except FileExistsError:
        for each in (path, *(path.with_name(path.name + suffix) for suffix in _BESIDE)):
            if each.exists():
                _narrow(each)


def _narrow(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        try:
            path.chmod(mode & stat.S_IRWXU)
        except PermissionError as error:
            _LOG.warning("others may read the metadata, which have credentials", file=str(path), reason=str(error))


def _locked(path: Path) -> int:
    """Lock the file and return the descriptor that keeps the lock. Raises `StoreFailedError` if another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreFailedError(f"another process is using the metadata in {path}") from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class SqliteStore(EmbeddedStore):
    """A store in one file, opened with `open`. `close` leaves no write-ahead log beside the file."""

    max_operations = _MAX_OPERATIONS

    @classmethod
    async def open(cls, path: Path, *, synced: bool = True) -> SqliteStore:
        """Open or create the file at `path`. Raises `StoreFailedError` if it cannot be used.

        Without `synced` a power cut may lose any transaction: for a file that is removed at the end.
        """
        database = _Database(path, synced)
        try:
            kvs, revision = await database.run(database.open)
        except BaseException:
            await database.shut_down()
            raise
        return cls(database, kvs, revision)

    def __init__(self, database: _Database, kvs: list[KV], revision: int) -> None:
        super().__init__(kvs, revision)
        self._last_lease = int.from_bytes(SystemRandomness().random_bytes(_LEASE_BYTES))
        self._database = database

    async def session(self, ttl: float) -> Session:  # noqa: ARG002 - there is no other process, so no lease expires
        return EmbeddedSession(self, *self._new_lease())

    async def close(self) -> None:
        await super().close()
        await self._database.shut_down()

    async def _persist(self, batch: Batch) -> None:
        await self._database.run(lambda: self._database.commit(batch))


class _Database:
    """The connection and its only thread: every method except `run` and `shut_down` is called by `run`."""

    def __init__(self, path: Path, synced: bool) -> None:
        self._path = path
        self._synced = synced
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="metadata")
        self._connection: sqlite3.Connection | None = None
        self._lock = -1
        self._ended = False

    async def run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    async def shut_down(self) -> None:
        """Close the connection and end the thread. Does nothing the second time."""
        if not self._ended:
            self._ended = True
            try:
                await self.run(self.close)
            finally:
                self._executor.shutdown(wait=True)

    def open(self) -> tuple[list[KV], int]:
        try:
            _make_private(self._path)
            self._lock = _locked(self._path)
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            return self._load(self._connection)
        except (sqlite3.Error, OSError) as error:
            raise StoreFailedError(f"cannot open the metadata in {self._path}: {error}") from error

    def commit(self, batch: Batch) -> None:
        assert self._connection is not None
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for key, kv in batch.changes:
            if kv is None:
                execute("DELETE FROM kv WHERE key = ?", (key,))
            else:
                execute("INSERT OR REPLACE INTO kv VALUES (?, ?, ?, ?, ?)", kv)
        execute("UPDATE store SET revision = ?", (batch.revision,))
        execute("COMMIT")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock >= 0:
            os.close(self._lock)  # after the connection: the end of any descriptor ends SQLite's own locks
            self._lock = -1

    def _load(self, connection: sqlite3.Connection) -> tuple[list[KV], int]:
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._synced else 'OFF'}")  # first: the next one may sync
        connection.execute("PRAGMA journal_mode = WAL")
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if (application_id, version) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            for statement in _SCHEMA:
                connection.execute(statement)
        elif application_id != _APPLICATION_ID:
            raise StoreFailedError(f"{self._path} is a database of another program")
        elif version != _VERSION:
            raise StoreFailedError(f"{self._path} has format {version}, this version reads format {_VERSION}")
        return self._without_leased(connection)

    @staticmethod
    def _without_leased(connection: sqlite3.Connection) -> tuple[list[KV], int]:
        revision = connection.execute("SELECT revision FROM store").fetchone()[0]
        if connection.execute("SELECT 1 FROM kv WHERE lease != 0 LIMIT 1").fetchone():
            revision += 1
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM kv WHERE lease != 0")
            connection.execute("UPDATE store SET revision = ?", (revision,))
            connection.execute("COMMIT")
        rows = connection.execute("SELECT * FROM kv ORDER BY key")
        return [KV(*row) for row in rows], revision
