"""Applies the rules for the disk, in front of the `Files` of a broker's log directories.

While there are rules, four methods of each `Files` object are shadowed by attributes of the object; without rules the
attributes are gone, and the files cost what they always cost.

A Fetch sends large parts of files by `sendfile`, past `Files`. While there are rules for reading, an interceptor
replaces such parts in its answers: a failing one raises when it is sent, as `sendfile` does on a broken disk; slow ones
hold back their own answer only, because a real part that is not in memory is read by a thread.

Not reached: the metadata store of a single broker, which is SQLite's file, and the process that compacts logs.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handle, Handler, Result
from odradek.broker.request.services import Services
from odradek.broker.storage.disk.files import BytesLike, Files
from odradek.broker.testing.faults.disk_rules import READ, SYNC, WRITE, DiskRule, NoSpaceError
from odradek.broker.testing.faults.execution import execute, release_records
from odradek.protocol.code_generation.encoder_writer import BYTES_LIKE
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

_LONGEST_PATH: Final = 1024
"""Of F_GETPATH (macOS)."""

Operation = Callable[..., Any]


class DiskFaults:
    """The rules for the files of one broker. Rules change on its event loop; files are used by its threads, too."""

    def __init__(self) -> None:
        self.rules: tuple[DiskRule, ...] = ()
        self._shadowed: list[tuple[Files, dict[str, Operation | None], dict[str, Operation]]] = []

    @property
    def concerns_reads(self) -> bool:
        """Whether `intercept` is needed."""
        return any(READ in rule.operations for rule in self.rules)

    @property
    def is_shadowing(self) -> bool:
        return bool(self._shadowed)

    def shadow(self, files: Iterable[Files]) -> None:
        """Apply the rules to these files from now on; several log directories may share one object."""
        for each in {id(each): each for each in files}.values():
            attributes = vars(each)
            shadows: dict[str, Operation] = {
                "pwrite": partial(self._pwrite, each.pwrite),
                "pread": partial(self._pread, each.pread),
                "fsync": partial(self._fsync, each.fsync),
                "fsync_directory": partial(self._fsync_directory, each.fsync_directory),
            }
            self._shadowed.append((each, {name: attributes.get(name) for name in shadows}, shadows))
            attributes.update(shadows)

    def unshadow(self) -> None:
        """Give the files their methods back. A shadow that something else has shadowed stays, without effect."""
        for files, before, shadows in self._shadowed:
            attributes = vars(files)
            for name, shadow in shadows.items():
                if attributes.get(name) is not shadow:
                    continue
                earlier = before[name]
                if earlier is None:
                    del attributes[name]
                else:
                    attributes[name] = earlier
        self._shadowed.clear()

    # ------------------------------------------------------------------------------------------------------------ files

    def _pwrite(self, original: Operation, descriptor: int, data: BytesLike, position: int) -> None:
        try:
            self._meet(WRITE, partial(_path_of, descriptor), len(data))
        except NoSpaceError as error:
            original(descriptor, memoryview(data)[: error.room], position)
            raise
        original(descriptor, data, position)

    def _pread(self, original: Operation, descriptor: int, length: int, position: int) -> bytes:
        self._meet(READ, partial(_path_of, descriptor), length)
        data: bytes = original(descriptor, length, position)
        return data

    def _fsync(self, original: Operation, descriptor: int) -> None:
        if not _is_directory(descriptor):  # as `fsync_directory` calls `fsync`, it would count twice
            self._meet(SYNC, partial(_path_of, descriptor), 0)
        original(descriptor)

    def _fsync_directory(self, original: Operation, path: str) -> None:
        self._meet(SYNC, lambda: path, 0)
        original(path)

    def _meet(self, operation: str, path_of: Callable[[], str], size: int) -> None:
        """Apply the rules to an operation, and wait as long as they say. Raises OSError."""
        seconds = sum(rule.meet(size) for rule in self._fitting(operation, path_of))
        if seconds:
            threading.Event().wait(
                seconds
            )  # on whichever thread the broker uses for it: a slow disk holds up the same one

    def _fitting(self, operation: str, path_of: Callable[[], str]) -> list[DiskRule]:
        rules = [rule for rule in self.rules if operation in rule.operations]
        if not any(rule.needs_path for rule in rules):
            return rules
        path = path_of()
        return [rule for rule in rules if rule.fits(path)]

    # ---------------------------------------------------------------------------------------------------------- fetches

    def intercept(self, handler: Handler) -> Handle:
        """Return a function that applies the rules to the parts of files in the answers of Fetch."""
        if not handler.row.sends_file_slices:
            return handler.handle

        async def handle(services: Services, context: RequestContext, request: Any) -> Result:
            answer = await execute(handler, services, context, request)
            return answer if not isinstance(answer, FetchResponse) else await self._read(answer)

        return handle

    async def _read(self, answer: FetchResponse) -> FetchResponse:
        seconds = 0.0
        topics = []
        for topic in answer.responses:
            rows = []
            for row in topic.partitions:
                longer, changed = self._read_row(row)
                seconds += longer
                rows.append(changed)
            topics.append(FetchableTopicResponse(topic.topic, topic.topic_id, rows))
        try:
            if seconds:
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            release_records(answer)
            raise
        return msgspec.structs.replace(answer, responses=topics)

    def _read_row(self, row: PartitionData) -> tuple[float, PartitionData]:
        records = row.records
        if not records or isinstance(records, BYTES_LIKE):  # these were read by `pread`
            return 0.0, row
        rules = self._fitting(READ, partial(_path_of, records.fileno()))
        try:
            return sum(rule.meet(len(records)) for rule in rules), row
        except OSError as error:
            return 0.0, msgspec.structs.replace(row, records=UnreadableSlice(records, error))


class UnreadableSlice:
    """A part of a file that cannot be read: sending it raises the error. Its bytes belong to the slice inside."""

    def __init__(self, inner: Any, error: OSError) -> None:
        self._inner = inner
        self._error = error
        self.position: int = inner.position

    def __len__(self) -> int:
        return len(self._inner)

    def fileno(self) -> int:
        raise self._error

    def release(self) -> None:
        self._inner.release()


def _path_of(descriptor: int) -> str:
    """The path of an open file, "" for one that the operating system does not know."""
    try:
        if sys.platform == "darwin":
            return fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(_LONGEST_PATH)).rstrip(b"\0").decode()
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return ""


def _is_directory(descriptor: int) -> bool:
    try:
        return stat.S_ISDIR(os.fstat(descriptor).st_mode)
    except OSError:
        return False
