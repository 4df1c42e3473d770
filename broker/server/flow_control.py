"""The outbox: the unsent bytes of one connection, sent in order and as fast as the kernel accepts them.

```
put(out, splices) ──► [ bytes ][ file part ][ bytes ] … ──transport──► kernel
                        │ kernel full: add_writer, continue when there is room; a turn sends little more than 1 MiB
                        └ file part not in memory: a thread reads it first, then it is sent
```

Invariants: bytes are sent in the order of `put`; if the queue is empty, `put` sends at once; `unsent` counts the bytes
that the kernel has not taken. A file slice is released when its last byte is sent, or when the outbox is closed and no
thread reads it any more. A slice has `__len__`, `fileno()`, `position` and `release()`. Each slice takes a system call
of its own, so a small one is better read into `out` before `put`.

`Connection` is the only user. It stops reading from its peer while `unsent` is over a limit; `on_progress` reports each
progress to it.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from odradek.broker.server import page_cache
from odradek.broker.server.transport import Buffer, Transport

JOIN_LIMIT: Final = 32 * 1024
TURN_BYTES: Final = 1024 * 1024 + 64 * 1024
"""A Fetch returns 1 MiB of a partition, and its response has some bytes more. A turn of their own for these bytes would
cost another round of epoll and 8 of 28 system calls."""

RunInThread = Callable[[Callable[[], None]], "asyncio.Future[None]"]


class FileSlice(Protocol):
    """A run of bytes of a file, kept open until `release`."""

    @property
    def position(self) -> int: ...
    def __len__(self) -> int: ...
    def fileno(self) -> int: ...
    def release(self) -> None: ...


Splices = Sequence[tuple[int, FileSlice]]


class _FilePart:
    __slots__ = ("cached_until", "end", "position", "slice")

    def __init__(self, of: FileSlice) -> None:
        self.slice = of
        self.position = of.position
        self.end = of.position + len(of)
        self.cached_until = of.position


class Outbox:
    """The unsent bytes of one connection. `put` raises OSError; a later failure is passed to `on_error`, once."""

    __slots__ = (
        "_closed",
        "_is_awaited",
        "_loading",
        "_loop",
        "_on_error",
        "_on_progress",
        "_queue",
        "_run_in_thread",
        "_send",
        "_transport",
        "_watching",
        "accepted",
        "unsent",
    )

    def __init__(
        self,
        transport: Transport,
        loop: asyncio.AbstractEventLoop,
        run_in_thread: RunInThread,
        on_progress: Callable[[], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.unsent = 0
        self.accepted = 0  # bytes of all `put`s ever
        self._transport = transport
        self._send = transport.send
        self._loop = loop
        self._run_in_thread = run_in_thread
        self._on_progress = on_progress
        self._on_error = on_error
        self._queue: deque[Buffer | _FilePart] = deque()
        self._watching = False  # for room in the kernel
        self._loading = False  # a file part into memory
        self._closed = False
        self._is_awaited = False  # `wait_for_room` was called

    def put(self, out: bytearray, splices: Splices = ()) -> None:
        """Send `out`, with each slice of `splices` inserted before its position; both belong to the outbox from now on.

        Raises OSError if the connection is lost or a file cannot be read; the connection must then be closed.
        """
        rest: Buffer = self._spliced(out, splices) if splices else out
        size = len(rest)
        self.accepted += size
        if self._queue:
            self._append(rest)
            if not self._watching and not self._loading:
                self._flush()
            return
        try:
            sent = self._send(rest)
        except BlockingIOError:
            sent = 0
        if sent < size:
            self.unsent = size - sent
            self._queue.append(memoryview(rest)[sent:])
            self._watch()

    def wait_for_room(self) -> None:
        """Report progress when the kernel has room again, also if nothing is left to send."""
        self._is_awaited = True
        self._watch()

    def close(self) -> None:
        """Discard unsent bytes and release the file slices."""
        self._closed = True
        self._unwatch()
        if self._loading:  # a thread reads the first part, which is released when the thread is done
            self._queue.popleft()
        for part in self._queue:
            if isinstance(part, _FilePart):
                part.slice.release()
        self._queue.clear()
        self.unsent = 0
        self._on_progress = self._on_error = _ignore  # the callbacks refer to this object: break the cycle

    def _append(self, data: Buffer) -> None:
        if not data:
            return
        self.unsent += len(data)
        last = self._queue[-1] if self._queue else None
        if isinstance(last, bytearray) and len(last) < JOIN_LIMIT:
            last += data
        else:
            self._queue.append(data)

    def _spliced(self, out: bytearray, splices: Splices) -> memoryview:
        """Queue everything up to the last slice, and return the bytes after it."""
        view = memoryview(out)
        start = 0
        for position, of in splices:
            self.accepted += position - start + len(of)
            self._append(view[start:position])
            self._append_file(of)
            start = position
        return view[start:]

    def _append_file(self, of: FileSlice) -> None:
        if not len(of):
            of.release()
            return
        self.unsent += len(of)
        self._queue.append(_FilePart(of))

    def _flush(self) -> None:
        """Send up to the budget of a turn, and register for the rest. Raises OSError."""
        queue = self._queue
        budget = TURN_BYTES
        try:
            while queue and budget > 0:
                part = queue[0]
                if isinstance(part, _FilePart):
                    offered = min(part.end - part.position, budget)
                    sent = self._send_file(part, offered)
                    if not sent:  # it is being read into memory
                        self._unwatch()
                        return
                else:
                    offered = len(part)
                    sent = self._transport.send_more(part) if len(queue) > 1 else self._send(part)
                    if sent == offered:
                        queue.popleft()
                    else:
                        queue[0] = memoryview(part)[sent:]
                self.unsent -= sent
                budget -= sent
                if sent < offered:
                    break  # the kernel is full: another try now makes 5 calls of sendfile for 1 MiB instead of 2.8
        except BlockingIOError:
            pass
        if queue:
            self._watch()
        else:
            self._unwatch()

    def _send_file(self, part: _FilePart, count: int) -> int:
        """Send up to `count` bytes of a file part; return 0 if it must be read into memory first. Raises OSError."""
        file = part.slice.fileno()
        if part.position >= part.cached_until:
            if not page_cache.is_cached(file, part.position, count):
                self._load(part, file, count)
                return 0
            part.cached_until = part.position + count
        sent = self._transport.send_file(file, part.position, min(count, part.cached_until - part.position))
        if not sent:
            raise OSError(errno.EIO, "a log file is shorter than its slice")
        part.position += sent
        if part.position == part.end:
            self._queue.popleft()
            part.slice.release()
        return sent

    def _load(self, part: _FilePart, file: int, count: int) -> None:
        self._loading = True
        loading = self._run_in_thread(partial(page_cache.load, file, part.position, count))
        loading.add_done_callback(partial(self._loaded, part, part.position + count))

    def _loaded(self, part: _FilePart, until: int, loading: asyncio.Future[None]) -> None:
        self._loading = False
        error = None if loading.cancelled() else loading.exception()
        if self._closed:
            part.slice.release()
        elif error is not None:
            self._on_error(error)
        else:
            part.cached_until = until  # if pages were evicted again meanwhile, sending waits for the disk once
            self._continue()

    def _continue(self) -> None:
        before = self.unsent
        try:
            self._flush()
        except OSError as error:
            self._on_error(error)
            return
        if self.unsent != before or self._is_awaited:
            self._is_awaited = False
            self._on_progress()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._loop.add_writer(self._transport.fileno(), self._continue)

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._transport.fileno())


def release_all(splices: Splices) -> None:
    """Release slices that will not be sent; has no effect on slices that were."""
    for _, of in splices:
        of.release()


def _ignore(*_: object) -> None:
    """Ignore the reports of a closed outbox."""
