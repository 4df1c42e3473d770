"""The memory of large receive buffers, counted from their making until nothing refers to them any more.

A large request lives in its buffer while it is received, while it is executed, and while a thread still writes it
although its client has gone. So what is counted is the life of the buffer itself: `LargeBuffer` reports its end from
whatever thread drops the last view of it.

The limit is not a wall: whoever receives asks `is_full` before it makes a buffer larger, and may go over the limit if
otherwise nobody could finish (`odradek.broker.server.connections`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class ReceiveMemory:
    """The large buffers of one thread's readers. `limit` is in bytes, None: none.

    `is_full` tells whether they have reached it, as of the last `create` or `count_freed`. While it is so, `on_freed`
    is called whenever a buffer has ended, in any thread.
    """

    __slots__ = ("_freed", "_held", "is_full", "limit", "on_freed")

    def __init__(self, limit: int | None = None, on_freed: Callable[[], None] | None = None) -> None:
        self.limit = limit
        self.on_freed = on_freed
        self.is_full = False
        self._held = 0
        self._freed: deque[int] = deque()  # sizes that are yet to be subtracted; threads append to it

    @property
    def held(self) -> int:
        """Bytes of the buffers that are alive."""
        self.count_freed()
        return self._held

    def create(self, size: int) -> bytearray:
        """Return a new buffer of `size` bytes, which may go over the limit."""
        buffer = LargeBuffer(self, size)
        self._held += size
        self.count_freed()
        return buffer

    def count_freed(self) -> None:
        """Take note of the buffers that have ended."""
        freed = self._freed
        while True:
            while freed:
                self._held -= freed.popleft()
            self.is_full = self.limit is not None and self._held >= self.limit
            if not freed:  # else a thread may have looked at `is_full` too early to call `on_freed`
                return

    def freed(self, size: int) -> None:
        """Note that a buffer has ended; called by it."""
        self._freed.append(size)
        if self.is_full and self.on_freed is not None:
            self.on_freed()


class LargeBuffer(bytearray):
    """A buffer that `ReceiveMemory.create` made."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: ReceiveMemory, size: int) -> None:
        self._memory = memory
        self._size = 0  # of a buffer for which there is no memory
        super().__init__(size)
        self._size = size

    def __del__(self) -> None:
        self._memory.freed(self._size)
