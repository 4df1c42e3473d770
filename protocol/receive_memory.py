"""The memory of large receive buffers, counted from their creation until nothing refers to them.

A large request stays in its buffer while it is received, while it is executed, and while a thread still writes it after
its client has disconnected. So the lifetime of the buffer itself is counted: `LargeBuffer` reports its deletion, in the
thread that drops the last view of it.

The limit is soft: a receiver checks `is_full` before it enlarges a buffer, and may exceed the limit if otherwise no
request could complete (`odradek.broker.server.connections`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class ReceiveMemory:
    """The large buffers of one thread's readers. `limit` is in bytes; None: no limit.

    `is_full` is whether they had reached the limit at the last `create` or `count_freed`. While it is true, `on_freed`
    is called for every buffer that is deleted, in any thread.
    """

    __slots__ = ("_freed", "_held", "is_full", "limit", "on_freed")

    def __init__(self, limit: int | None = None, on_freed: Callable[[], None] | None = None) -> None:
        self.limit = limit
        self.on_freed = on_freed
        self.is_full = False
        self._held = 0
        self._freed: deque[int] = deque()  # sizes to subtract; other threads append to it

    @property
    def held(self) -> int:
        """Bytes of the buffers that exist."""
        self.count_freed()
        return self._held

    def create(self, size: int) -> bytearray:
        """Return a new buffer of `size` bytes, even if that exceeds the limit."""
        buffer = LargeBuffer(self, size)
        self._held += size
        self.count_freed()
        return buffer

    def count_freed(self) -> None:
        """Subtract the buffers that were deleted since the last call."""
        freed = self._freed
        while True:
            while freed:
                self._held -= freed.popleft()
            self.is_full = self.limit is not None and self._held >= self.limit
            if not freed:  # otherwise a thread may have read `is_full` too early to call `on_freed`
                return

    def record_freed(self, size: int) -> None:
        """Record that a buffer was deleted; the buffer calls it, in any thread."""
        self._freed.append(size)
        if self.is_full and self.on_freed is not None:
            self.on_freed()


class LargeBuffer(bytearray):
    """A buffer that `ReceiveMemory.create` made."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: ReceiveMemory, size: int) -> None:
        self._memory = memory
        self._size = 0  # if the allocation fails
        super().__init__(size)
        self._size = size

    def __del__(self) -> None:
        self._memory.record_freed(self._size)
