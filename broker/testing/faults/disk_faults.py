"""Applies the rules for the disk, in front of the `Files` of a broker's log directories.

A Fetch sends large parts of files by `sendfile`, past `Files`. While there are rules for reading, an interceptor
replaces such parts in its answers: a failing one raises when it is sent, as `sendfile` does on a broken disk; slow ones
hold back their own answer only, because a real part that is not in memory is read by a thread.

Not reached: the metadata store of a single broker, which is SQLite's file, and the process that compacts logs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handle, Handler, Result
from odradek.broker.request.services import Services
from odradek.broker.storage.disk.files import Files
from odradek.broker.testing.faults.disk_rules import READ, DiskRule
from odradek.broker.testing.faults.execution import execute, release_records
from odradek.broker.testing.faults.shadowed_files import ShadowedFiles, path_of
from odradek.protocol.code_generation.encoder_writer import BYTES_LIKE
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class DiskFaults:
    """The rules for the files of one broker. Rules change on its event loop; files are used by its threads, too."""

    def __init__(self) -> None:
        self.rules: tuple[DiskRule, ...] = ()
        self._shadowed: dict[int, ShadowedFiles] = {}  # by the id of the object, which each keeps alive

    @property
    def concerns_reads(self) -> bool:
        """Whether `intercept` is needed."""
        return any(READ in rule.operations for rule in self.rules)

    def shadow(self, files: Iterable[Files]) -> None:
        """Apply the rules to these files, of which several log directories may share one, and to no others."""
        wanted = {id(each): each for each in files}
        for key in self._shadowed.keys() - wanted.keys():
            self._shadowed.pop(key).remove()
        for key in wanted.keys() - self._shadowed.keys():
            self._shadowed[key] = ShadowedFiles(wanted[key], self._meet)

    def _meet(self, operation: str, find_path: Callable[[], str], size: int) -> None:
        """Apply the rules to an operation, and wait as long as they say. Raises OSError."""
        seconds = sum(rule.meet(size) for rule in self._fitting(operation, find_path))
        if seconds:  # on whichever thread the broker uses: a slow disk holds up the same one
            threading.Event().wait(seconds)

    def _fitting(self, operation: str, find_path: Callable[[], str]) -> list[DiskRule]:
        rules = [rule for rule in self.rules if operation in rule.operations]
        if not any(rule.needs_path for rule in rules):
            return rules
        path = find_path()
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
        rules = self._fitting(READ, partial(path_of, records.fileno()))
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
